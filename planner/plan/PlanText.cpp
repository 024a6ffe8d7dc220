// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The text form of a plan, one fact per line:
//
//   mgpu-plan 5
//   scheduler "list"
//   model "frozen durations"
//   transforms copies bucket     what was done to the DAG first; may be absent
//   devices 2
//   streams 4
//   memory 80000000000         the limit of each device; may be absent
//   load 84.4                  of what runs once, before the replays
//   replay 12.5                of one replay: the makespan
//   fetch 0                    of what runs once, after them
//   error 0.4                  the share by which times may be wrong; may be
//                              absent
//   bound 11 by path           of the replay; what proves it may be absent
//   arena 0 1024                 device, bytes; one line per device
//   place 3 "x" at 256           buffer, its name, offset
//   step 7 "saxpy" on 0.1 start 1.5 for 2 measured after 3 4
//   step 8 "sum" on 0.2 1.2 by tree LL128 start 3.5 for 9
//   end
//
// A stream is device.stream, `host.0` on the host. `by` is NCCL's algorithm and
// protocol, where one was chosen. A duration rests on what is `measured`,
// `published` or `given`; where nothing is said it is assumed.
// `after` lists waits. Names repeat what the DAG says, so that a plan read
// against another DAG is refused. Numbers are the shortest text that reads back
// to the same double. Blank lines and lines that start with # are skipped.

#include "planner/plan/Plan.h"

#include "support/LineText.h"
#include "support/Units.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::planner {

static constexpr uint32_t planVersion = 5;

std::string_view toString(BoundArgument argument) {
  switch (argument) {
  case BoundArgument::Unknown:
    return "";
  case BoundArgument::Work:
    return "work";
  case BoundArgument::CriticalPath:
    return "path";
  case BoundArgument::StreamHeads:
    return "heads";
  case BoundArgument::StreamSet:
    return "set";
  case BoundArgument::Memory:
    return "memory";
  case BoundArgument::Search:
    return "search";
  }
  return "";
}

std::string Plan::boundVerdict() const {
  if (!(lowerBoundUs > 0))
    return "";
  const double above = makespanUs / lowerBoundUs - 1;
  // Sums in another order may round to just above the bound.
  return above <= 1e-9
             ? "optimal"
             : fmt::format("within {:.3g} % of the optimum", 100 * above);
}

std::string Plan::verdict() const {
  std::string words = boundVerdict();
  // A proof about times that nobody measured is no promise of a replay.
  if (!words.empty() && std::ranges::any_of(steps, [](const PlanStep &step) {
        return step.origin == Origin::Assumed;
      }))
    words += " under assumed rates";
  return words;
}

std::string Plan::usText(double us) const { return withinError(us, error); }

std::string Plan::verdictLine() const {
  const std::string words = verdict();
  return fmt::format(
      "makespan {} us{}, bound {} us{}{}{}{} ({})", usText(makespanUs),
      error > 0 ? fmt::format(" +-{:.0f} %", 100 * error) : "",
      usText(lowerBoundUs), boundBy == BoundArgument::Unknown ? "" : " by ",
      toString(boundBy), words.empty() ? "" : ": ", words, model);
}

uint64_t largestArena(const Plan &plan) {
  uint64_t most = 0;
  for (uint64_t bytes : plan.arenaBytes)
    most = std::max(most, bytes);
  return most;
}

std::vector<double> durationsOf(const Plan &plan, const Dag &dag) {
  std::vector<double> durations(dag.nodes.size());
  for (const PlanStep &step : plan.steps)
    durations[step.node.value] = step.durationUs;
  return durations;
}

std::string Plan::onceLine() const {
  std::string out;
  if (loadUs > 0)
    out = fmt::format("load {} us, once before the replays", usText(loadUs));
  if (fetchUs > 0)
    out += fmt::format("{}fetch {} us, once after the replays",
                       out.empty() ? "" : "; ", usText(fetchUs));
  return out;
}

static std::string streamText(PlanStream stream) {
  return stream.device.isHost()
             ? fmt::format("host.{}", stream.stream.value)
             : fmt::format("{}.{}", stream.device.value, stream.stream.value);
}

std::string toText(const Plan &plan, const Dag &dag) {
  std::string out = fmt::format("mgpu-plan {}\n", planVersion);
  auto append = [&out](const std::string &text) { out += text; };
  append(fmt::format("scheduler {}\nmodel {}\n", quoteText(plan.scheduler),
                     quoteText(plan.model)));
  if (!plan.transforms.empty())
    append(fmt::format("transforms {}\n", fmt::join(plan.transforms, " ")));
  append(fmt::format("devices {}\nstreams {}\n", plan.numDevices,
                     plan.streamsPerDevice));
  if (plan.memoryBytes != UINT64_MAX)
    append(fmt::format("memory {}\n", plan.memoryBytes));
  append(fmt::format("load {}\nreplay {}\nfetch {}\n", numberText(plan.loadUs),
                     numberText(plan.makespanUs), numberText(plan.fetchUs)));
  if (plan.error > 0)
    append(fmt::format("error {}\n", numberText(plan.error)));
  append(fmt::format("bound {}", numberText(plan.lowerBoundUs)));
  if (plan.boundBy != BoundArgument::Unknown)
    append(fmt::format(" by {}", toString(plan.boundBy)));
  out += '\n';
  for (size_t device = 0; device < plan.arenaBytes.size(); ++device)
    append(fmt::format("arena {} {}\n", device, plan.arenaBytes[device]));
  for (const Placement &placement : plan.placements)
    append(fmt::format("place {} {} at {}\n", placement.buffer.value,
                       quoteText(dag.buffer(placement.buffer).name),
                       placement.offset));
  for (const PlanStep &step : plan.steps) {
    append(fmt::format("step {} {} on", step.node.value,
                       quoteText(dag.node(step.node).name)));
    for (PlanStream stream : step.streams)
      append(" " + streamText(stream));
    if (step.algorithm)
      append(fmt::format(" by {} {}", toString(step.algorithm->shape),
                         toString(step.algorithm->protocol)));
    append(fmt::format(" start {} for {}", numberText(step.startUs),
                       numberText(step.durationUs)));
    if (step.origin != Origin::Assumed)
      append(fmt::format(" {}", toString(step.origin)));
    if (!step.waits.empty())
      out += " after";
    for (NodeId wait : step.waits)
      append(fmt::format(" {}", wait.value));
    out += '\n';
  }
  return out + "end\n";
}

namespace {

class PlanParser {
public:
  PlanParser(std::string_view text, const Dag &dag)
      : lines("plan", text), dag(dag) {}

  Result<std::vector<std::string>> transforms() {
    MGPU_TRY(parseTitle());
    return std::move(plan.transforms);
  }

  Result<Plan> run() {
    MGPU_TRY(parseHeader());
    for (;;) {
      LineReader line = lines.next();
      std::string_view head = line.word();
      if (head == "place") {
        if (!plan.steps.empty())
          return line.bad("\"place\" lines come before \"step\" lines");
        MGPU_TRY(parsePlace(line));
      } else if (head == "step") {
        MGPU_TRY(parseStep(line));
      } else if (head == "end") {
        MGPU_TRY(line.expectEnd());
        break;
      } else if (head.empty() && lines.atEnd()) {
        return line.bad("the text ends without \"end\"; it is cut short");
      } else {
        return line.bad(fmt::format("expected \"place\", \"step\" or \"end\", "
                                    "found \"{}\"",
                                    head.substr(0, 40)));
      }
    }
    if (LineReader line = lines.next(); !line.atEnd())
      return line.bad("text after \"end\"");
    return std::move(plan);
  }

private:
  /// Up to the transforms.
  Result<void> parseTitle() {
    MGPU_TRY(lines.title("mgpu-plan", planVersion,
                         "mgpu-tune plan PROGRAM -o FILE"));
    MGPU_TRY_ASSIGN(plan.scheduler, textLine("scheduler"));
    MGPU_TRY_ASSIGN(plan.model, textLine("model"));
    if (auto line = lineThatMayBe("transforms"))
      while (!line->atEnd())
        plan.transforms.emplace_back(line->word());
    return {};
  }

  Result<void> parseHeader() {
    MGPU_TRY(parseTitle());
    MGPU_TRY_ASSIGN(plan.numDevices, countLine("devices"));
    if (plan.numDevices != dag.numDevices)
      return fail(ErrorKind::Invalid,
                  fmt::format("plan line {}: the plan is for {} devices, the "
                              "program has {}",
                              lines.number(), plan.numDevices, dag.numDevices));
    MGPU_TRY_ASSIGN(plan.streamsPerDevice, countLine("streams"));
    if (auto line = lineThatMayBe("memory")) {
      MGPU_TRY_ASSIGN(plan.memoryBytes, line->integer<uint64_t>("byte count"));
      MGPU_TRY(line->expectEnd());
    }
    MGPU_TRY_ASSIGN(plan.loadUs, timeLine("load"));
    MGPU_TRY_ASSIGN(plan.makespanUs, timeLine("replay"));
    MGPU_TRY_ASSIGN(plan.fetchUs, timeLine("fetch"));
    if (auto line = lineThatMayBe("error")) {
      MGPU_TRY_ASSIGN(plan.error, line->number("share"));
      if (!(plan.error > 0 && plan.error <= 100))
        return line->bad("the share of an error must be from 0 to 100");
      MGPU_TRY(line->expectEnd());
    }
    MGPU_TRY(parseBound());
    for (uint32_t device = 0; device < plan.numDevices; ++device) {
      LineReader line = lines.next();
      MGPU_TRY(line.keyword("arena"));
      MGPU_TRY_ASSIGN(uint32_t got, line.integer<uint32_t>("device number"));
      if (got != device)
        return line.bad(fmt::format("expected the arena of device {}, found "
                                    "that of {}",
                                    device, got));
      MGPU_TRY_ASSIGN(uint64_t bytes, line.integer<uint64_t>("byte count"));
      plan.arenaBytes.push_back(bytes);
      MGPU_TRY(line.expectEnd());
    }
    plan.steps.reserve(dag.nodes.size());
    return {};
  }

  /// The next line after its keyword, if it has that one.
  std::optional<LineReader> lineThatMayBe(std::string_view key) {
    LineSource after = lines;
    LineReader line = after.next();
    if (line.peek() != key)
      return std::nullopt;
    lines = after;
    (void)line.word();
    return line;
  }

  Result<void> parseBound() {
    LineReader line = lines.next();
    MGPU_TRY(line.keyword("bound"));
    MGPU_TRY_ASSIGN(plan.lowerBoundUs, line.number("time in microseconds"));
    if (line.atEnd())
      return {};
    MGPU_TRY(line.keyword("by"));
    std::string_view word = line.word();
    for (BoundArgument argument : allBoundArguments)
      if (word == toString(argument))
        plan.boundBy = argument;
    if (plan.boundBy == BoundArgument::Unknown)
      return line.bad(fmt::format("\"{}\" does not prove a bound; write work, "
                                  "path, heads, set, memory or search",
                                  word.substr(0, 40)));
    return line.expectEnd();
  }

  Result<std::string> textLine(std::string_view key) {
    LineReader line = lines.next();
    MGPU_TRY(line.keyword(key));
    MGPU_TRY_ASSIGN(std::string value, line.quoted());
    MGPU_TRY(line.expectEnd());
    return value;
  }
  Result<uint32_t> countLine(std::string_view key) {
    LineReader line = lines.next();
    MGPU_TRY(line.keyword(key));
    MGPU_TRY_ASSIGN(uint32_t value, line.integer<uint32_t>("count"));
    MGPU_TRY(line.expectEnd());
    return value;
  }
  Result<double> timeLine(std::string_view key) {
    LineReader line = lines.next();
    MGPU_TRY(line.keyword(key));
    MGPU_TRY_ASSIGN(double value, line.number("time in microseconds"));
    MGPU_TRY(line.expectEnd());
    return value;
  }

  Result<void> parsePlace(LineReader &line) {
    MGPU_TRY_ASSIGN(uint32_t id, line.integer<uint32_t>("buffer number"));
    if (id >= dag.buffers.size())
      return line.bad(fmt::format("the program has no buffer {}", id));
    MGPU_TRY_ASSIGN(std::string name, line.quoted());
    if (name != dag.buffers[id].name)
      return line.bad(fmt::format("buffer {} is named \"{}\" in the program, "
                                  "\"{}\" here; is this the plan of another "
                                  "program?",
                                  id, dag.buffers[id].name, name));
    MGPU_TRY(line.keyword("at"));
    MGPU_TRY_ASSIGN(uint64_t offset, line.integer<uint64_t>("offset"));
    plan.placements.push_back({BufferId{id}, offset});
    return line.expectEnd();
  }

  Result<PlanStream> parseStream(LineReader &line) {
    std::string_view word = line.word();
    size_t dot = word.find('.');
    if (dot == std::string_view::npos)
      return line.bad(
          fmt::format("\"{}\" is not a stream; write device.stream or "
                      "host.stream",
                      word.substr(0, 40)));
    PlanStream stream;
    if (word.substr(0, dot) != "host") {
      MGPU_TRY_ASSIGN(
          uint32_t device,
          line.integerOf<uint32_t>(word.substr(0, dot), "device number"));
      if (device >= dag.numDevices)
        return line.bad(fmt::format("the program has no device {}", device));
      stream.device = DeviceId{int32_t(device)};
    }
    MGPU_TRY_ASSIGN(
        stream.stream.value,
        line.integerOf<uint32_t>(word.substr(dot + 1), "stream number"));
    return stream;
  }

  Result<void> parseAlgorithm(LineReader &line, PlanStep &step) {
    MGPU_TRY(line.keyword("by"));
    std::string_view shape = line.word(), protocol = line.word();
    step.algorithm = parseCollectiveAlgorithm(shape, protocol);
    if (!step.algorithm)
      return line.bad(
          fmt::format("\"{} {}\" is not an algorithm and protocol; write "
                      "ring, tree or nvls and LL, LL128 or Simple",
                      shape.substr(0, 40), protocol.substr(0, 40)));
    if (workClass(dag.node(step.node)) != WorkClass::Collective)
      return line.bad(fmt::format("node {} is not a collective, and has no "
                                  "algorithm",
                                  step.node.value));
    return {};
  }

  Result<void> parseStep(LineReader &line) {
    PlanStep step;
    MGPU_TRY_ASSIGN(step.node.value, line.integer<uint32_t>("node number"));
    if (step.node.value >= dag.nodes.size())
      return line.bad(
          fmt::format("the program has no node {}", step.node.value));
    MGPU_TRY_ASSIGN(std::string name, line.quoted());
    if (name != dag.node(step.node).name)
      return line.bad(fmt::format("node {} is named \"{}\" in the program, "
                                  "\"{}\" here; is this the plan of another "
                                  "program?",
                                  step.node.value, dag.node(step.node).name,
                                  name));
    MGPU_TRY(line.keyword("on"));
    while (!line.atEnd() && line.peek() != "start" && line.peek() != "by") {
      MGPU_TRY_ASSIGN(PlanStream stream, parseStream(line));
      step.streams.push_back(stream);
    }
    if (line.peek() == "by") {
      MGPU_TRY(parseAlgorithm(line, step));
    }
    MGPU_TRY(line.keyword("start"));
    MGPU_TRY_ASSIGN(step.startUs, line.number("time in microseconds"));
    MGPU_TRY(line.keyword("for"));
    MGPU_TRY_ASSIGN(step.durationUs, line.number("time in microseconds"));
    for (Origin origin : allOrigins)
      if (line.peek() == toString(origin)) {
        step.origin = origin;
        (void)line.word();
        break;
      }
    if (!line.atEnd())
      MGPU_TRY(line.keyword("after"));
    while (!line.atEnd()) {
      MGPU_TRY_ASSIGN(uint32_t wait, line.integer<uint32_t>("node number"));
      if (wait >= dag.nodes.size())
        return line.bad(fmt::format("the program has no node {}", wait));
      step.waits.push_back(NodeId{wait});
    }
    plan.steps.push_back(std::move(step));
    return {};
  }

  LineSource lines;
  const Dag &dag;
  Plan plan;
};

} // namespace

Result<Plan> parsePlan(std::string_view text, const Dag &dag) {
  return PlanParser(text, dag).run();
}

Result<std::vector<std::string>> parsePlanTransforms(std::string_view text) {
  static const Dag none;
  return PlanParser(text, none).transforms();
}

} // namespace mgpu::planner
