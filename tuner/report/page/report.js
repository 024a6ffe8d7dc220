// Draws the data of the page (tuner/report/Json.cpp) with ECharts. Each chart's element gets
// data-rendered once it is drawn; what goes wrong is listed in data-errors of the document.
"use strict";
(() => {
  const root = document.documentElement;
  const fault = (what) => { root.dataset.errors = (root.dataset.errors || "") + what + "\n"; };
  window.addEventListener("error", (event) => fault(event.message));
  document.addEventListener("securitypolicyviolation", (event) => fault("refused: " + event.blockedURI));

  const data = JSON.parse(document.getElementById("data").textContent);
  const charts = new Map();
  let which = data.timeline_after ? "after" : "before";

  // Tooltips are HTML; names are the user's.
  const text = (value) => String(value).replace(/[&<>"']/g, (c) => "&#" + c.charCodeAt(0) + ";");
  const number = (value, digits = 4) => Number(value.toPrecision(digits)).toString();
  const duration = (us) => us >= 1e6 ? number(us / 1e6) + " s" : us >= 1e3 ? number(us / 1e3) + " ms" :
    us >= 1 ? number(us) + " us" : number(1e3 * us) + " ns";
  const percent = (share) => (100 * share).toFixed(1) + " %";
  const rows = (pairs) => pairs.filter((p) => p[1] !== "").map((p) => text(p[0]) + ": <b>" + text(p[1]) + "</b>").join("<br>");
  const wrapped = (value) => '<div style="max-width:440px;white-space:normal;overflow-wrap:anywhere">' + value + "</div>";
  const unescapePairs = (configuration) => configuration.replace(/\\(.)/g, "$1").replace(/,/g, ", ");

  function colours() {
    const style = getComputedStyle(root);
    const get = (name) => style.getPropertyValue("--" + name).trim();
    return { kernel: get("kernel"), copy: get("copy"), collective: get("collective"), exposed: get("exposed"),
             text: get("text"), soft: get("soft"), line: get("line"), card: get("card"), best: get("best"), faint: get("faint") };
  }

  function base(c) {
    return {
      animation: false, aria: { enabled: true },
      textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: c.text },
      tooltip: { backgroundColor: c.card, borderColor: c.line, textStyle: { color: c.text, fontSize: 12 }, confine: true },
      legend: { top: 0, left: 0, itemWidth: 14, itemHeight: 10, itemGap: 10, textStyle: { color: c.soft } },
    };
  }
  // Labels of an axis of values have about 60 pixels each, whatever the width.
  const widthOf = (id) => { const e = document.getElementById("chart-" + id); return e ? e.clientWidth : 0; };
  const ticks = (pixels) => Math.max(2, Math.min(8, Math.floor(pixels / 60)));
  const axis = (c, name, more) => Object.assign({
    name, nameLocation: "middle", nameGap: 30, nameTextStyle: { color: c.soft },
    axisLabel: { color: c.soft, hideOverlap: true, formatter: (v) => typeof v === "number" ? number(v, 3) : v }, axisLine: { lineStyle: { color: c.line } },
    axisTick: { lineStyle: { color: c.line } }, splitLine: { lineStyle: { color: c.line, opacity: 0.6 } },
  }, more);

  function draw(id, height, option, many) {
    const element = document.getElementById("chart-" + id);
    if (!element)
      return;
    if (charts.has(id))
      charts.get(id).dispose();
    delete element.dataset.rendered;
    element.style.height = height + "px";
    const chart = echarts.init(element, null, { renderer: many ? "canvas" : "svg" });
    chart.on("finished", () => { element.dataset.rendered = "yes"; });
    chart.setOption(option);
    charts.set(id, chart);
  }

  // Bars from zero with their 95 % intervals.
  function result(c) {
    const bars = [{ name: "default", at: data.before, colour: c.faint }];
    if (!data.is_default)
      bars.push({ name: "tuned", at: data.after, colour: c.collective });
    const seen = new Set();
    for (const trial of data.trials.filter((t) => t.kernel === null && t.status === "ok").sort((a, b) => a.median_us - b.median_us)) {
      if (seen.size === 5 || seen.has(trial.configuration))
        continue;
      seen.add(trial.configuration);
      bars.push({ name: "tried, " + ["fastest", "2nd", "3rd", "4th", "5th"][seen.size - 1], colour: c.kernel,
                  at: { us: trial.median_us, low_us: trial.low_us, high_us: trial.high_us, samples: trial.samples },
                  configuration: trial.configuration });
    }
    bars.reverse();
    const right = widthOf("result") < 560 ? 70 : 100;
    draw("result", 60 + 34 * bars.length, Object.assign(base(c), {
      legend: undefined,
      grid: { left: 96, right, top: 6, bottom: 46 },
      xAxis: axis(c, "microseconds of one replay", { type: "value", min: 0, splitNumber: ticks(widthOf("result") - 96 - right) }),
      yAxis: axis(c, "", { type: "category", data: bars.map((b) => b.name), splitLine: { show: false } }),
      tooltip: Object.assign(base(c).tooltip, { formatter: (p) => {
        const bar = bars[p.dataIndex];
        return wrapped(rows([[bar.name, duration(bar.at.us)],
          ["95 %", bar.at.low_us < bar.at.high_us ? duration(bar.at.low_us) + " to " + duration(bar.at.high_us) : ""],
          ["samples", bar.at.samples || ""], ["configuration", bar.configuration ? unescapePairs(bar.configuration) : ""]]));
      } }),
      series: [
        { type: "bar", barWidth: 18, data: bars.map((b) => ({ value: b.at.us, itemStyle: { color: b.colour, borderRadius: 2 } })) },
        { type: "custom", silent: true, z: 5, data: bars.map((b, k) => [b.at.low_us, k, b.at.high_us]),
          encode: { x: [0, 2], y: 1 },
          renderItem: (params, api) => {
            const low = api.coord([api.value(0), api.value(1)]), high = api.coord([api.value(2), api.value(1)]);
            const style = { stroke: c.text, lineWidth: 1.4, fill: null };
            const line = (x1, y1, x2, y2) => ({ type: "line", shape: { x1, y1, x2, y2 }, style });
            return { type: "group", children: [line(low[0], low[1], high[0], high[1]),
              line(low[0], low[1] - 5, low[0], low[1] + 5), line(high[0], high[1] - 5, high[0], high[1] + 5),
              { type: "text", style: { x: high[0] + 8, y: high[1], text: duration(bars[params.dataIndex].at.us), fill: c.text,
                                       fontSize: 12, verticalAlign: "middle" } }] };
          } },
      ],
    }));
  }

  // A row for each stream; what is exposed is marked along the foot of its step.
  function timeline(c) {
    const given = data["timeline_" + which];
    if (!given)
      return;
    const streams = new Map();
    const keyOf = (stream) => stream.device * 1000 + stream.stream;
    for (const step of given.steps)
      for (const stream of step.streams)
        streams.set(keyOf(stream), stream);
    const order = [...streams.keys()].sort((a, b) => b - a);
    const row = new Map(order.map((key, k) => [key, k]));
    const label = (stream, short) => short ? (stream.device < 0 ? "host" : stream.device) + " . " + stream.stream :
      (stream.device < 0 ? "host" : "device " + stream.device) + ", stream " + stream.stream;
    const items = { kernel: [], copy: [], collective: [] }, exposed = [], planned = [];
    given.steps.forEach((step, k) => {
      for (const stream of step.streams)
        items[step.kind].push([step.start_us, step.end_us, row.get(keyOf(stream)), k]);
      if (given.measured && given.planned_us)
        for (const stream of step.streams)
          planned.push([step.planned_start_us, step.planned_end_us, row.get(keyOf(stream)), k]);
    });
    for (const each of given.exposed)
      for (const stream of given.steps[each.step].streams)
        if (stream.device === each.device)
          exposed.push([each.start_us, each.end_us, row.get(keyOf(stream)), each.step]);
    const box = (kind) => (params, api) => {
      const from = api.coord([api.value(0), api.value(2)]), to = api.coord([api.value(1), api.value(2)]);
      const full = api.size([0, 1])[1] * 0.72, top = from[1] - full / 2;
      const height = kind === "exposed" ? 5 : full, isOutline = kind === "planned";
      const shape = echarts.graphic.clipRectByRect(
        { x: from[0], y: kind === "exposed" ? top + full - 5 : top, width: Math.max(to[0] - from[0], 1), height },
        { x: params.coordSys.x, y: params.coordSys.y, width: params.coordSys.width, height: params.coordSys.height });
      if (!shape)
        return null;
      if (isOutline)
        return { type: "rect", shape, style: { fill: "none", stroke: c.best, lineWidth: 1, opacity: 0.7 } };
      const name = given.steps[api.value(3)].name;
      const fits = kind !== "exposed" && shape.width > 7 * name.length + 8;
      return { type: "rect", shape, style: { fill: c[kind], stroke: kind === "exposed" ? null : c.card, lineWidth: 0.6 },
        textContent: fits ? { type: "text", style: { text: name, fill: "#fff", fontSize: 11 } } : undefined,
        textConfig: { position: "inside" } };
    };
    const series = (kind, values, z) => ({ name: kind, type: "custom", renderItem: box(kind), data: values, z,
      itemStyle: { color: kind === "planned" ? c.best : c[kind] }, silent: kind === "planned", encode: { x: [0, 1], y: 2 }, clip: true });
    const narrow = widthOf("timeline") < 560, left = narrow ? 62 : 118;
    // A model that is far off would leave little room to what was measured.
    const isNear = Math.max(given.planned_us || 0, given.bound_us || 0) < 3 * given.length_us;
    const bound = { type: "line", name: "bound", data: [[given.bound_us, 0]], symbol: "none", itemStyle: { color: c.exposed },
      lineStyle: { color: c.exposed, type: "dashed" }, markLine: { symbol: "none", silent: true,
        lineStyle: { color: c.exposed, type: "dashed", width: 1.5 }, label: { show: false }, data: [{ xAxis: given.bound_us }] } };
    const option = Object.assign(base(c), {
      legend: Object.assign(base(c).legend, { selected: { planned: isNear, bound: isNear || !given.measured } }),
      grid: { left, right: 20, top: narrow ? 60 : 34, bottom: 84 },
      xAxis: axis(c, "microseconds", { type: "value", min: 0,
        splitNumber: ticks(widthOf("timeline") - left - 20),
        axisLabel: { color: c.soft, hideOverlap: true, showMaxLabel: false, formatter: (v) => number(v, 3) } }),
      yAxis: axis(c, "", { type: "category", data: order.map((key) => label(streams.get(key), narrow)), splitLine: { show: true, lineStyle: { color: c.line, opacity: 0.4 } } }),
      dataZoom: [{ type: "inside", filterMode: "weakFilter", zoomOnMouseWheel: "ctrl" },
                 { type: "slider", filterMode: "weakFilter", left, height: 22, bottom: 8, borderColor: c.line, textStyle: { color: c.soft },
                   labelFormatter: (value) => duration(value) }],
      tooltip: Object.assign(base(c).tooltip, { formatter: (p) => {
        const step = given.steps[p.data[3]];
        return wrapped(rows([[step.kind, step.name], ["from", duration(p.data[0])], ["to", duration(p.data[1])],
          [p.seriesName === "exposed" ? "exposed" : "takes", duration(p.data[1] - p.data[0])], ["source", step.source]]));
      } }),
      series: [series("kernel", items.kernel, 2), series("copy", items.copy, 2), series("collective", items.collective, 2),
               series("exposed", exposed, 3), ...(planned.length ? [series("planned", planned, 4)] : []),
               ...(given.bound_us ? [bound] : [])],
    });
    draw("timeline", (narrow ? 156 : 130) + 30 * order.length, option, given.steps.length > 1500);
  }

  function progress(c) {
    const of = (kernel, ok) => data.trials.map((t, k) => [t, k])
      .filter(([t]) => (t.kernel !== null) === kernel && (t.status === "ok") === ok);
    const known = (list) => list.filter(([t]) => t.relative !== null).map(([t, k]) => [t.spent_seconds, t.relative, k]);
    const best = [];
    for (const [x, y] of known(of(false, true)))
      best.push([x, Math.min(y, best.length ? best[best.length - 1][1] : 1)]);
    const end = data.trials.length ? data.trials[data.trials.length - 1].spent_seconds : 0;
    if (best.length)
      best.push([end, best[best.length - 1][1]]);
    const failed = [...of(false, false), ...of(true, false)].map(([t, k]) => [t.spent_seconds, 1, k]);
    const dots = (name, colour, values, size, symbol) => ({ name, type: "scatter", symbol, symbolSize: size, data: values,
      itemStyle: { color: colour, opacity: 0.85 }, z: 3 });
    draw("progress", 340, Object.assign(base(c), {
      grid: { left: 64, right: 20, top: widthOf("progress") < 560 ? 64 : 40, bottom: 84 },
      xAxis: axis(c, "seconds spent", { type: "value", min: 0, splitNumber: ticks(widthOf("progress") - 84) }),
      yAxis: axis(c, "time, default = 1", { type: "log", logBase: 2, nameGap: 44,
        min: (v) => Math.min(v.min, 1) / 1.15, max: (v) => Math.max(v.max, 1) * 1.15,
        axisLabel: { color: c.soft, showMinLabel: false, showMaxLabel: false, formatter: (v) => number(v, 3) } }),
      dataZoom: [{ type: "inside", zoomOnMouseWheel: "ctrl" }, { type: "slider", left: 64, height: 22, bottom: 8, borderColor: c.line, textStyle: { color: c.soft },
                                       labelFormatter: (value) => number(value, 3) + " s" }],
      tooltip: Object.assign(base(c).tooltip, { formatter: (p) => {
        if (p.data.length < 3)
          return rows([["best so far", percent(p.data[1])]]);
        const trial = data.trials[p.data[2]];
        return wrapped(rows([["of", trial.kernel === null ? "the whole program" : trial.kernel], ["status", trial.status],
          ["time", trial.median_us ? duration(trial.median_us) : ""], ["of the default's", trial.relative ? percent(trial.relative) : ""],
          ["configuration", unescapePairs(trial.configuration)], ["why", trial.what]]));
      } }),
      series: [dots("kernel alone", c.faint, known(of(true, true)), 5, "circle"),
               dots("whole program", c.kernel, known(of(false, true)), 7, "circle"),
               dots("failed", c.exposed, failed, 10, "diamond"),
               { name: "best of the program", type: "line", step: "end", symbol: "none", data: best, z: 4,
                 lineStyle: { color: c.best, width: 2 }, itemStyle: { color: c.best } }],
    }), data.trials.length > 1500);
  }

  function importance(c) {
    const bars = [];
    for (const group of data.importance)
      for (const each of group.parameters.slice(0, 8))
        bars.push({ name: (group.subject === "program" ? "" : group.subject + ": ") + each.parameter,
                    share: each.share, values: each.values, group });
    bars.sort((a, b) => b.share - a.share);
    bars.splice(16);
    bars.reverse();
    const room = widthOf("importance");
    const widest = Math.min(Math.max(...bars.map((b) => b.name.length)) * 7 + 20, 300, Math.round(0.42 * room));
    draw("importance", 60 + 24 * bars.length, Object.assign(base(c), {
      legend: undefined,
      grid: { left: widest, right: 60, top: 6, bottom: 46 },
      xAxis: axis(c, room < 560 ? "share of variance" : "share of the variance of log time", { type: "value", min: 0, max: 1,
        splitNumber: ticks(room - widest - 60), axisLabel: { color: c.soft, hideOverlap: true, formatter: (v) => Math.round(100 * v) + " %" } }),
      yAxis: axis(c, "", { type: "category", data: bars.map((b) => b.name), splitLine: { show: false },
        axisLabel: { color: c.soft, width: widest - 14, overflow: "truncate" } }),
      tooltip: Object.assign(base(c).tooltip, { formatter: (p) => {
        const bar = bars[p.dataIndex];
        return rows([[bar.name, percent(bar.share)], ["values tried", bar.values], ["trials of " + bar.group.subject, bar.group.trials]]);
      } }),
      series: [{ type: "bar", barWidth: 13, data: bars.map((b) => ({ value: b.share,
        itemStyle: { color: b.group.subject === "program" ? c.collective : c.kernel, borderRadius: 2 } })),
        label: { show: true, position: "right", color: c.text, formatter: (p) => percent(p.value) } }],
    }));
  }

  function drawAll() {
    const c = colours();
    for (const one of [result, timeline, progress, importance])
      try { one(c); } catch (error) { fault(one.name + ": " + error.message); }
  }

  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
  const mark = () => { root.dataset.shown = isDark() ? "dark" : "light"; };
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    mark();
    drawAll();
  });
  dark.addEventListener("change", () => { mark(); drawAll(); });
  const choice = document.getElementById("which");
  if (choice)
    choice.addEventListener("click", (event) => {
      if (!event.target.dataset.which)
        return;
      which = event.target.dataset.which;
      for (const button of choice.children)
        button.classList.toggle("on", button.dataset.which === which);
      timeline(colours());
    });
  let drawnAt = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth !== drawnAt)
      drawAll();
    drawnAt = window.innerWidth;
  });
  mark();
  drawAll();
})();
