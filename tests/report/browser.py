#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Opens a report in a headless Chromium, light and dark, wide and narrow, and looks at what its scripts made.

Usage: browser.py MGPU_TUNE PROGRAM [KEEP_DIR]

The report is of a real session whose names are changed to ones that try to leave their place.
Exit code 77: there is no Chromium, and MGPU_REQUIRE_BROWSER does not ask for one.
"""

import html as html_text
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

CHARTS = ["result", "timeline", "progress", "importance"]
EVIL = "</script><script>document.documentElement.dataset.errors='broke out'</script><img src=x onerror=alert(1)>"

# Runs in the page after its own script: clicks what can be clicked, and writes down what came of it.
PROBE = """
<script>
window.addEventListener("load", () => setTimeout(() => {
  const root = document.documentElement, note = (name, value) => { root.dataset[name] = value; };
  const chart = echarts.getInstanceByDom(document.getElementById("chart-timeline"));
  const steps = () => echarts.getInstanceByDom(document.getElementById("chart-timeline"))
    .getOption().series.reduce((sum, s) => sum + s.data.length, 0);
  const span = () => { const zoom = chart.getOption().dataZoom[0]; return zoom.end - zoom.start; };
  const before = span();
  chart.dispatchAction({ type: "dataZoom", start: 40, end: 60 });
  note("zoomed", before === 100 && Math.abs(span() - 20) < 1e-6);
  const tip = chart.getOption().tooltip[0].formatter({ seriesName: "kernel", data: [0, 1, 0, 0] });
  note("tooltip", !/<(script|img)/.test(tip));
  const profile = JSON.parse(document.getElementById("data").textContent).profile;
  const rows = [...document.querySelectorAll("#nodes tbody tr")].map(row => [...row.cells].map(cell => cell.textContent));
  const longest = profile.nodes.slice().sort((a, b) => b.measured_us - a.measured_us || a.id - b.id);
  note("nodes", rows.length > 3 && rows.length === Math.min(longest.length, 100) && rows.every((row, k) =>
    row[0] === longest[k].name && Math.abs(row[3] - longest[k].predicted_us) < 6e-4 &&
    Math.abs(row[4] - longest[k].measured_us) < 6e-4 &&
    (longest[k].ratio > 0 ? Math.abs(row[5] - longest[k].ratio) < 6e-3 : row[5] === "-")));
  note("profile", /By `mgpu-tune profile`.*the decided one/.test(document.getElementById("profile").textContent));
  const shown = root.dataset.shown;
  document.getElementById("theme").click();
  note("flipped", root.dataset.shown !== shown);
  document.getElementById("theme").click();
  note("flippedBack", root.dataset.shown === shown);
  const choice = document.querySelector('#which [data-which="before"]');
  if (choice) { choice.click(); note("chose", steps() > 0 && choice.className === "on"); }
  else note("chose", "none");
}, 200));
</script>
"""

# The same for what must hold at any width: no two texts of a chart lie on each other, no text ends at
# the edge, and the page is no wider than its window. What is found goes to the page around it.
LOOK = """
<script>
window.addEventListener("load", () => setTimeout(() => {
  const found = [];
  for (const chart of document.querySelectorAll(".chart")) {
    const frame = chart.getBoundingClientRect();
    const texts = [...chart.querySelectorAll("svg text")].map(t => [t.textContent, t.getBoundingClientRect()])
      .filter(([text, r]) => text.trim() && r.width > 0);
    if (!texts.length) found.push(chart.id + " has no text");
    texts.forEach(([text, a], k) => {
      if (a.left < frame.left - 1 || a.right > frame.right + 1) found.push(chart.id + ": '" + text + "' leaves the chart");
      for (const [other, b] of texts.slice(k + 1))
        if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3)
          found.push(chart.id + ": '" + text + "' lies on '" + other + "'");
    });
  }
  const root = document.documentElement;
  if (root.scrollWidth > window.innerWidth) found.push("the page is " + root.scrollWidth + " wide, its window " + window.innerWidth);
  if (root.dataset.errors) found.push(root.dataset.errors);
  parent.postMessage({ width: window.innerWidth, shown: root.dataset.shown, found }, "*");
}, 300));
</script>
"""
# A window of a browser has a least width; a frame has none.
FRAME = """<html><body style="margin:0"><iframe src="looked.html" style="border:0;width:WIDTHpx;height:900px"></iframe>
<script>window.addEventListener("message", (event) => { document.documentElement.dataset.answer = JSON.stringify(event.data); });</script>
</body></html>"""


def fail(message):
    sys.exit("FAIL: " + message)


def find_browser():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    if os.environ.get("MGPU_REQUIRE_BROWSER"):
        fail("there is no chromium, and MGPU_REQUIRE_BROWSER is set")
    print("SKIP: there is no chromium (make setup installs it)")
    sys.exit(77)


class Browser:
    def __init__(self, path, folder):
        self.path, self.folder, self.runs = path, folder, 0

    def run(self, page, dark, window, *action):
        self.runs += 1
        command = [self.path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
                   "--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars",
                   f"--window-size={window}", "--virtual-time-budget=3000",
                   f"--user-data-dir={self.folder}/profile{self.runs}"]
        if dark:
            command.append("--blink-settings=preferredColorScheme=0")
        done = subprocess.run([*command, "--enable-logging=stderr", *action, "file://" + page], capture_output=True, timeout=60)
        if done.returncode != 0:
            fail(f"{self.path} ended with code {done.returncode}")
        said = [line for line in done.stderr.decode("utf-8", "replace").splitlines() if ":CONSOLE" in line]
        if said:
            fail(f"{page}: the console says {said[0]}")
        return done.stdout.decode("utf-8", "replace")


def pixels(path):
    """Width, height and rows of RGB(A) of a PNG of 8 bits."""
    with open(path, "rb") as file:
        data = file.read()
    at, body = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", data[at + 8:at + 18])
        elif kind == b"IDAT":
            body += data[at + 8:at + 8 + length]
        at += 12 + length
    size = {2: 3, 6: 4}[colour]
    raw, rows, before = zlib.decompress(body), [], bytes(width * size)
    for y in range(height):
        kind, line = raw[y * (width * size + 1)], bytearray(raw[y * (width * size + 1) + 1:(y + 1) * (width * size + 1)])
        if kind == 1:
            for x in range(size, len(line)):
                line[x] = (line[x] + line[x - size]) & 255
        elif kind == 2:
            line = bytearray((a + b) & 255 for a, b in zip(line, before))
        elif kind in (3, 4):
            for x in range(len(line)):
                left, up = line[x - size] if x >= size else 0, before[x]
                if kind == 3:
                    guess = (left + up) // 2
                else:
                    corner = before[x - size] if x >= size else 0
                    p = left + up - corner
                    guess = min((left, up, corner), key=lambda v: abs(p - v))
                line[x] = (line[x] + guess) & 255
        before = bytes(line)
        rows.append(before)
    return width, size, rows


def check_picture(path, dark):
    width, size, rows = pixels(path)
    corner = sum(rows[4][4 * size:4 * size + 3]) / 3
    if (corner < 60) != dark or (corner > 200) == dark:
        fail(f"{path}: the page's background has brightness {corner:.0f}")
    colours = {bytes(row[x * size:x * size + 3]) for row in rows[::4] for x in range(0, width, 4)}
    if len(colours) < 30:
        fail(f"{path}: only {len(colours)} colours: the charts are not there")


def make_report(tune, program, folder):
    def run(*arguments):
        done = subprocess.run([tune, *arguments], capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            fail(f"{' '.join(arguments)}: exit code {done.returncode}: {done.stderr}")
        return done.stdout
    first, second = os.path.join(folder, "first.db"), os.path.join(folder, "second.db")
    run("tune", program, "--budget", "18", "--db", first)
    run("profile", program, "--repeat", "3", "--db", first)
    changed = []
    for line in run("db", "export", "--db", first).splitlines():
        record = json.loads(line)
        about = json.loads(record.get("environment", "{}")) if "configuration" in record else {}
        if "program" in about:
            about["program"]["file"] = "dir/" + EVIL
            about["program"]["kernels"][0]["name"] = EVIL
            for which in ("before", "after"):
                for step in about["program"].get(which, {}).get("steps", []):
                    step[1] = EVIL
            about["session"]["times"]["comparison"] += EVIL
            record["environment"] = json.dumps(about)
        if "profile" in about:
            for node in about["profile"]["nodes"]:
                node[1] = node[2] = EVIL
            record["environment"] = json.dumps(about)
        changed.append(json.dumps(record))
    lines = os.path.join(folder, "changed.jsonl")
    with open(lines, "w", encoding="utf-8") as file:
        file.write("\n".join(changed) + "\n")
    run("db", "import", lines, "--db", second)
    page = os.path.join(folder, "report.html")
    run("report", "--db", second, "-o", page)
    return page


def check_text(html):
    """Nothing refers to anything outside, and no name is markup."""
    own = re.sub(r"<script>\s*/\*\n\* Licensed to the Apache.*?</script>", "", html, flags=re.S)
    if len(own) > len(html) - 1_000_000:
        fail("ECharts is not in the page, or not where it is looked for")
    for pattern in (r"\b(src|href)\s*=\s*[\"']?(?!x onerror)", r"url\(", r"@import", r"https?://", r"<link", r"<img"):
        if found := re.search(pattern, re.sub(r'<script type="application/json".*?</script>', "", own, flags=re.S)
                              .replace("&lt;img src=x", "")):
            fail(f"the page refers to something: {own[max(found.start() - 80, 0):found.end() + 80]!r}")
    if html.count("<script") != 3:
        fail(f"the page has {html.count('<script')} scripts, not 3")


def check_widths(browser, html, folder):
    """The page at two widths, light and dark."""
    with open(os.path.join(folder, "looked.html"), "w", encoding="utf-8") as file:
        file.write(html[:html.rindex("</body>")] + LOOK + "</body></html>")
    for width in (400, 1280):
        frame = os.path.join(folder, f"frame{width}.html")
        with open(frame, "w", encoding="utf-8") as file:
            file.write(FRAME.replace("WIDTH", str(width)))
        for dark in (False, True):
            dom = browser.run(frame, dark, "1300,1000", "--dump-dom")
            answer = re.search(r'data-answer="([^"]*)"', dom)
            if not answer:
                fail(f"{width} px: no answer from the page")
            said = json.loads(html_text.unescape(answer.group(1)))
            if said["width"] != width or said["shown"] != ("dark" if dark else "light") or said["found"]:
                fail(f"{width} px: {said}")


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    tune, program = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
    browser_path = find_browser()
    with tempfile.TemporaryDirectory() as folder:
        page = make_report(tune, program, folder)
        with open(page, encoding="utf-8") as file:
            html = file.read()
        check_text(html)
        probed = os.path.join(folder, "probed.html")
        with open(probed, "w", encoding="utf-8") as file:
            file.write(html[:html.rindex("</body>")] + PROBE + "</body></html>")
        browser = Browser(browser_path, folder)
        for dark in (False, True):
            name = "dark" if dark else "light"
            dom = browser.run(probed, dark, "1280,900", "--dump-dom")
            opening = re.search(r"<html[^>]*>", dom).group(0)
            if "data-errors" in opening:
                fail(f"{name}: {opening}")
            for mark in (f'data-shown="{name}"', 'data-zoomed="true"', 'data-tooltip="true"', 'data-flipped="true"',
                         'data-flipped-back="true"', 'data-nodes="true"', 'data-profile="true"'):
                if mark not in opening:
                    fail(f"{name}: no {mark} in {opening}")
            if 'data-chose="true"' not in opening and 'data-chose="none"' not in opening:
                fail(f"{name}: the other timeline was not drawn: {opening}")
            for chart in CHARTS:
                element = re.search(rf'<div class="chart" id="chart-{chart}"[^>]*>', dom)
                if not element or 'data-rendered="yes"' not in element.group(0):
                    fail(f"{name}: chart {chart} was not drawn: {element and element.group(0)}")
            if dom.count("<svg") < len(CHARTS):
                fail(f"{name}: {dom.count('<svg')} pictures for {len(CHARTS)} charts")
            picture = os.path.join(folder, name + ".png")
            browser.run(page, dark, "640,900", "--screenshot=" + picture)
            check_picture(picture, dark)
            if len(sys.argv) == 4: # for people
                browser.run(page, dark, "1280,3200", f"--screenshot={os.path.realpath(sys.argv[3])}/{name}.png")
        check_widths(browser, html, folder)
        if len(sys.argv) == 4:
            shutil.copy(page, sys.argv[3])
    print(f"{len(CHARTS)} charts drawn, light and dark, wide and narrow")


if __name__ == "__main__":
    main()
