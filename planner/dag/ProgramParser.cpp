// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads the text form of a program. Nothing of it is trusted: numbers are
// bounded where they become sizes here, and Program::check() judges the rest.
#include "planner/dag/ProgramText.h"

#include "support/JsonFields.h"
#include "support/LineText.h"

#include <algorithm>

namespace mgpu::planner {

namespace {

class Parser {
public:
  Parser(std::string_view text, const BlobReader &blobs)
      : text(text), lines("program", text), blobs(blobs) {}

  Result<Program> run();

private:
  Result<void> parseHeader();
  Result<void> parseLine(LineReader &line, std::string_view head);
  Result<void> parseLoop(LineReader &line);
  Result<void> parseInduction(LineReader &line);
  Result<void> parseBuffer(LineReader &line);
  Result<void> parseKernel(LineReader &line);
  Result<SharedFacts> parseFacts(LineReader &line, const std::string &hash);
  Result<ProgramArgument> parseArgument(LineReader &line);
  Result<void> parseNode(LineReader &line);
  Result<void> parseLaunch(LineReader &line);
  Result<void> parseCopy(LineReader &line);
  Result<void> parseCollective(LineReader &line);
  Result<void> parseMember(LineReader &line);
  Result<void> parseOpaque(LineReader &line);
  Result<void> parseUse(LineReader &line);
  Result<void> parseAfter(LineReader &line);

  Result<std::vector<std::byte>> blob(LineReader &line);
  Result<std::string> blobText(LineReader &line);

  /// The lines that may follow within a node, in this order.
  enum class Part { None, Node, Work, Use, After };

  /// Nodes are large, and a vector that grows has them twice.
  void makeRoom();

  const std::string_view text;
  LineSource lines;
  const BlobReader &blobs;
  Program program;
  Part part = Part::None;
};

Result<std::vector<std::byte>> Parser::blob(LineReader &line) {
  std::string hash(line.word());
  if (hash.size() != 64 ||
      hash.find_first_not_of("0123456789abcdef") != std::string::npos)
    return line.bad("expected a SHA-256 of 64 hexadecimal digits");
  Result<std::vector<std::byte>> bytes = blobs(hash);
  if (!bytes)
    return fail(bytes.error().kind,
                line.bad(bytes.error().message).value().message);
  return bytes;
}

Result<std::string> Parser::blobText(LineReader &line) {
  MGPU_TRY_ASSIGN(std::vector<std::byte> bytes, blob(line));
  return std::string(reinterpret_cast<const char *>(bytes.data()),
                     bytes.size());
}

Result<void> Parser::parseHeader() {
  MGPU_TRY(lines.title("mgpu-program", programVersion,
                       "mgpu-tune bundle PROGRAM -o FILE"));
  LineReader line = lines.next();
  Dag &dag = program.dag;
  MGPU_TRY(line.keyword("program"));
  MGPU_TRY_ASSIGN(dag.name, line.quoted());
  MGPU_TRY(line.keyword("devices"));
  MGPU_TRY_ASSIGN(dag.numDevices, line.integer<uint32_t>("count"));
  if (dag.numDevices > maxDevices)
    return line.bad(
        fmt::format("{} devices are more than {}", dag.numDevices, maxDevices));
  MGPU_TRY(line.keyword("spmd"));
  MGPU_TRY_ASSIGN(dag.spmd, readFlag(line));
  MGPU_TRY(line.keyword("resident"));
  MGPU_TRY_ASSIGN(dag.residentBytes, line.integer<uint64_t>("byte count"));
  return line.expectEnd();
}

Result<void> Parser::parseLoop(LineReader &line) {
  Loop &loop = program.dag.loop;
  MGPU_TRY_ASSIGN(loop.trips, line.integer<uint64_t>("count"));
  MGPU_TRY(line.keyword("at"));
  MGPU_TRY_ASSIGN(loop.location, line.quoted());
  return line.expectEnd();
}

Result<void> Parser::parseInduction(LineReader &line) {
  Induction out;
  MGPU_TRY_ASSIGN(out.buffer, readBufferId(line));
  MGPU_TRY(line.keyword("from"));
  MGPU_TRY_ASSIGN(out.first, line.integer<int64_t>("number"));
  MGPU_TRY(line.keyword("step"));
  MGPU_TRY_ASSIGN(out.step, line.integer<int64_t>("number"));
  program.dag.loop.inductions.push_back(out);
  return line.expectEnd();
}

Result<void> Parser::parseBuffer(LineReader &line) {
  Buffer out;
  MGPU_TRY_ASSIGN(out.name, line.quoted());
  MGPU_TRY(line.keyword("on"));
  MGPU_TRY_ASSIGN(out.device, readDevice(line));
  MGPU_TRY_ASSIGN(out.role,
                  readChoice(line, "role of a buffer", BufferRole::Constant,
                             [](BufferRole role) { return nameOf(role); }));
  MGPU_TRY_ASSIGN(out.index, line.integer<uint32_t>("number"));
  MGPU_TRY(line.keyword("bytes"));
  MGPU_TRY_ASSIGN(out.sizeBytes, line.integer<uint64_t>("byte count"));
  MGPU_TRY(readTypeAndShape(line, out.elementType, out.shape));
  if (out.role == BufferRole::Constant) {
    MGPU_TRY(line.keyword("contents"));
    auto contents = blob(line);
    if (!contents)
      return failIn(fmt::format("constant '{}': ", out.name),
                    std::move(contents.error()));
    out.contents = std::move(*contents);
  }
  program.dag.buffers.push_back(std::move(out));
  return line.expectEnd();
}

Result<SharedFacts> Parser::parseFacts(LineReader &line,
                                       const std::string &hash) {
  MGPU_TRY_ASSIGN(const std::string text, blobText(line));
  auto facts = JsonFields::read<KernelFacts>("what is said of a kernel", text);
  if (!facts)
    return line.bad(facts.error().message);
  if (facts->kernel != hash)
    return line.bad("the facts are of another kernel");
  if (!facts->areCountable())
    return line.bad("the facts have figures that no kernel has");
  return SharedFacts(std::move(*facts));
}

Result<void> Parser::parseKernel(LineReader &line) {
  KernelSpec kernel;
  MGPU_TRY_ASSIGN(kernel.name, line.quoted());
  MGPU_TRY(line.keyword("block"));
  MGPU_TRY_ASSIGN(kernel.block, readDimensions(line));
  MGPU_TRY(line.keyword("arguments"));
  MGPU_TRY_ASSIGN(kernel.numArguments, line.integer<uint32_t>("count"));
  MGPU_TRY(line.keyword("hash"));
  MGPU_TRY_ASSIGN(kernel.hash, line.quoted());
  MGPU_TRY(line.keyword("at"));
  MGPU_TRY_ASSIGN(kernel.location, line.quoted());
  if (!line.atEnd() && line.peek() == "facts") {
    line.word();
    MGPU_TRY_ASSIGN(kernel.facts, parseFacts(line, kernel.hash));
  }
  if (line.peek() == "source") {
    line.word();
    MGPU_TRY_ASSIGN(std::string text, blobText(line));
    kernel.source = MlirKernel{std::move(text)};
  } else if (line.peek() == "cuda") {
    line.word();
    MGPU_TRY_ASSIGN(const std::string facts, line.quoted());
    MGPU_TRY_ASSIGN(CudaFile file,
                    JsonFields::read<CudaFile>("a kernel of CUDA C++", facts));
    MGPU_TRY(line.keyword("text"));
    MGPU_TRY_ASSIGN(file.text, blobText(line));
    MGPU_TRY(line.keyword("reference"));
    MGPU_TRY_ASSIGN(file.reference, blobText(line));
    if (!line.atEnd() && line.peek() == "host") {
      line.word();
      MGPU_TRY_ASSIGN(file.hostEntry, line.quoted());
      MGPU_TRY_ASSIGN(file.host, blobText(line));
    }
    while (!line.atEnd() && line.peek() == "cubin") {
      line.word();
      MGPU_TRY_ASSIGN(std::string arch, line.quoted());
      MGPU_TRY_ASSIGN(file.cubins[std::move(arch)], blobText(line));
    }
    kernel.source = std::move(file);
  }
  program.dag.kernels.push_back(std::move(kernel));
  return line.expectEnd();
}

Result<ProgramArgument> Parser::parseArgument(LineReader &line) {
  ProgramArgument out;
  MGPU_TRY_ASSIGN(out.name, line.quoted());
  MGPU_TRY_ASSIGN(out.role,
                  readChoice(line, "role of an argument", ArgumentRole::Dynamic,
                             [](ArgumentRole role) { return toString(role); }));
  MGPU_TRY(readTypeAndShape(line, out.elementType, out.shape));
  if (line.peek() == "value") {
    line.word();
    MGPU_TRY_ASSIGN(out.value, line.quoted());
  } else {
    MGPU_TRY(line.keyword("buffer"));
    MGPU_TRY_ASSIGN(out.buffer, readBufferId(line));
  }
  MGPU_TRY(line.expectEnd());
  return out;
}

Result<void> Parser::parseNode(LineReader &line) {
  DagNode node;
  MGPU_TRY_ASSIGN(node.name, line.quoted());
  MGPU_TRY_ASSIGN(node.phase,
                  readChoice(line, "phase", Phase::Fetch,
                             [](Phase phase) { return toString(phase); }));
  MGPU_TRY(line.keyword("on"));
  while (!line.atEnd() && line.peek() != "at") {
    MGPU_TRY_ASSIGN(DeviceId id, readDevice(line));
    node.devices.push_back(id);
  }
  MGPU_TRY(line.keyword("at"));
  MGPU_TRY_ASSIGN(node.location, line.quoted());
  MGPU_TRY(line.keyword("cost"));
  MGPU_TRY_ASSIGN(node.flops, line.number("count of operations"));
  for (uint64_t *bytes :
       {&node.bytesRead, &node.bytesWritten, &node.outBytes}) {
    MGPU_TRY_ASSIGN(*bytes, line.integer<uint64_t>("byte count"));
  }
  if (!line.atEnd() && line.peek() == "asks") {
    line.word();
    LaunchWork &asks = node.asks.emplace();
    for (double *count : {&asks.instructions, &asks.lines, &asks.movedBytes}) {
      MGPU_TRY_ASSIGN(*count, line.number("count of a launch's work"));
    }
    MGPU_TRY_ASSIGN(asks.flightBytes, line.integer<uint32_t>("byte count"));
    if (!line.atEnd() && line.peek() == "blocks") {
      line.word();
      MGPU_TRY_ASSIGN(asks.blocks, line.number("count of blocks"));
    }
  }
  if (!line.atEnd() && line.peek() == "in") {
    line.word();
    PipelinePart &part = node.part.emplace();
    MGPU_TRY_ASSIGN(part.kind,
                    readChoice(line, "part of a pipeline",
                               PipelinePart::Kind::Weights,
                               [](auto kind) { return toString(kind); }));
    MGPU_TRY_ASSIGN(part.microbatch, line.integer<uint32_t>("microbatch"));
    MGPU_TRY_ASSIGN(part.stage, line.integer<uint32_t>("stage"));
  }
  if (!line.atEnd() && line.peek() == "matmul") {
    line.word();
    node.isMatmul = true;
  }
  if (!line.atEnd()) {
    MGPU_TRY(line.keyword("for"));
    MGPU_TRY_ASSIGN(node.durationUs, line.number("time in microseconds"));
  }
  program.dag.nodes.push_back(std::move(node));
  return line.expectEnd();
}

Result<void> Parser::parseLaunch(LineReader &line) {
  KernelCall call;
  MGPU_TRY_ASSIGN(call.kernel.value, line.integer<uint32_t>("kernel number"));
  MGPU_TRY(line.keyword("grid"));
  MGPU_TRY_ASSIGN(call.grid, readDimensions(line));
  if (line.peek() == "part") {
    line.word();
    call.part.emplace();
    MGPU_TRY_ASSIGN(call.part->first, readDimensions(line));
    MGPU_TRY_ASSIGN(call.part->count, readDimensions(line));
  }
  MGPU_TRY(line.keyword("with"));
  while (!line.atEnd()) {
    std::string_view word = line.word();
    size_t plus = word.find('+');
    std::string_view what = word.substr(0, plus);
    if (plus == std::string_view::npos || what.size() < 2 ||
        (what[0] != 'b' && what[0] != 's'))
      return line.bad(fmt::format("\"{}\" is not an argument of a kernel",
                                  word.substr(0, 40)));
    KernelArgument argument;
    if (what[0] == 'b') {
      MGPU_TRY_ASSIGN(uint32_t id, line.integerOf<uint32_t>(what.substr(1),
                                                            "buffer number"));
      argument.value = BufferId{id};
    } else {
      uint64_t bits = 0;
      auto [end, error] =
          std::from_chars(what.data() + 1, what.data() + what.size(), bits, 16);
      if (error != std::errc() || end != what.data() + what.size())
        return line.bad(
            fmt::format("\"{}\" is not a scalar", what.substr(0, 40)));
      argument.value = bits;
    }
    MGPU_TRY_ASSIGN(argument.offsetBytes,
                    line.integerOf<int64_t>(word.substr(plus + 1), "offset"));
    call.arguments.push_back(argument);
  }
  program.dag.nodes.back().work = std::move(call);
  return {};
}

Result<void> Parser::parseCopy(LineReader &line) {
  CopyCall call;
  MGPU_TRY_ASSIGN(call.source, readBufferId(line));
  MGPU_TRY_ASSIGN(call.sourceBox, readBox(line));
  MGPU_TRY_ASSIGN(call.destination, readBufferId(line));
  MGPU_TRY_ASSIGN(call.destinationBox, readBox(line));
  program.dag.nodes.back().work = std::move(call);
  return line.expectEnd();
}

Result<void> Parser::parseCollective(LineReader &line) {
  CollectiveCall call;
  MGPU_TRY_ASSIGN(call.kind, readCollectiveKind(line));
  MGPU_TRY_ASSIGN(
      call.reduction,
      readChoice(line, "reduction", ReductionKind::Max,
                 [](ReductionKind kind) { return toString(kind); }));
  MGPU_TRY_ASSIGN(call.elementType, readElementType(line));
  MGPU_TRY(line.keyword("root"));
  MGPU_TRY_ASSIGN(call.root, line.integer<uint32_t>("rank"));
  MGPU_TRY(line.keyword("communicator"));
  MGPU_TRY_ASSIGN(call.communicator,
                  line.integer<uint32_t>("communicator number"));
  if (!line.atEnd())
    MGPU_TRY(line.keyword("pairs"));
  while (!line.atEnd()) {
    RankPair pair;
    MGPU_TRY_ASSIGN(pair.source, line.integer<uint32_t>("source"));
    MGPU_TRY_ASSIGN(pair.target, line.integer<uint32_t>("target"));
    call.pairs.push_back(pair);
  }
  program.dag.nodes.back().work = std::move(call);
  return line.expectEnd();
}

Result<void> Parser::parseMember(LineReader &line) {
  auto *call = part == Part::Work
                   ? std::get_if<CollectiveCall>(&program.dag.nodes.back().work)
                   : nullptr;
  if (!call)
    return line.bad("\"member\" does not follow \"collective\"");
  CollectiveMember member;
  MGPU_TRY_ASSIGN(member.device, readDevice(line));
  MGPU_TRY(line.keyword("send"));
  MGPU_TRY_ASSIGN(member.send, readBufferId(line));
  MGPU_TRY_ASSIGN(member.sendBox, readBox(line));
  MGPU_TRY(line.keyword("recv"));
  MGPU_TRY_ASSIGN(member.recv, readBufferId(line));
  MGPU_TRY_ASSIGN(member.recvBox, readBox(line));
  call->members.push_back(std::move(member));
  return line.expectEnd();
}

Result<void> Parser::parseOpaque(LineReader &line) {
  OpaqueCall call;
  MGPU_TRY_ASSIGN(call.isCollective, readFlag(line));
  MGPU_TRY_ASSIGN(call.kind, readCollectiveKind(line));
  MGPU_TRY_ASSIGN(call.bytes, line.integer<uint64_t>("byte count"));
  MGPU_TRY(line.keyword("group"));
  MGPU_TRY_ASSIGN(call.group, line.integer<uint32_t>("count"));
  if (line.peek() == "slice") {
    (void)line.word();
    call.isSlice = true;
  }
  if (line.peek() == "splittable") {
    (void)line.word();
    MGPU_TRY_ASSIGN(call.splittable, line.integer<uint64_t>("axis length"));
  }
  if (!line.atEnd()) {
    MGPU_TRY(line.keyword("share"));
    MGPU_TRY_ASSIGN(call.smShare, line.number("share"));
    if (!(call.smShare > 0 && call.smShare <= 1))
      return line.bad("a share of the multiprocessors is above 0 and at most "
                      "1");
  }
  program.dag.nodes.back().work = call;
  return line.expectEnd();
}

Result<void> Parser::parseUse(LineReader &line) {
  BufferUse use;
  MGPU_TRY_ASSIGN(use.buffer, readBufferId(line));
  std::string_view how = line.word();
  if (how != "r" && how != "w" && how != "rw" && how != "-")
    return line.bad(fmt::format("\"{}\" is not a use; write r, w, rw or -",
                                how.substr(0, 40)));
  use.reads = how.starts_with('r');
  use.writes = how.ends_with('w');
  MGPU_TRY_ASSIGN(use.box, readBox(line));
  if (!line.atEnd()) {
    MGPU_TRY(line.keyword("by"));
    for (int64_t &step : use.blockSteps) {
      MGPU_TRY_ASSIGN(step, line.integer<int64_t>("step"));
    }
  }
  program.dag.nodes.back().uses.push_back(std::move(use));
  return line.expectEnd();
}

Result<void> Parser::parseAfter(LineReader &line) {
  NodeId to{uint32_t(program.dag.nodes.size() - 1)};
  while (!line.atEnd()) {
    std::string_view word = line.word();
    size_t kind = edgeLetters.find(word[0]);
    if (kind == std::string_view::npos)
      return line.bad(fmt::format("\"{}\" is not a dependence; it begins with "
                                  "d, a, o or c",
                                  word.substr(0, 40)));
    MGPU_TRY_ASSIGN(uint32_t from,
                    line.integerOf<uint32_t>(word.substr(1), "node number"));
    program.dag.edges.push_back({NodeId{from}, to, DepKind(kind)});
  }
  return {};
}

Result<void> Parser::parseLine(LineReader &line, std::string_view head) {
  using Parse = Result<void> (Parser::*)(LineReader &);
  struct Rule {
    std::string_view head;
    Parse parse;
    Part least, most; ///< what it may follow
    Part then;
  };
  static constexpr Rule rules[] = {
      {"loop", &Parser::parseLoop, Part::None, Part::None, Part::None},
      {"induction", &Parser::parseInduction, Part::None, Part::None,
       Part::None},
      {"buffer", &Parser::parseBuffer, Part::None, Part::None, Part::None},
      {"kernel", &Parser::parseKernel, Part::None, Part::None, Part::None},
      {"launch", &Parser::parseLaunch, Part::Node, Part::Node, Part::Work},
      {"copy", &Parser::parseCopy, Part::Node, Part::Node, Part::Work},
      {"collective", &Parser::parseCollective, Part::Node, Part::Node,
       Part::Work},
      {"opaque", &Parser::parseOpaque, Part::Node, Part::Node, Part::Work},
      {"member", &Parser::parseMember, Part::Work, Part::Work, Part::Work},
      {"use", &Parser::parseUse, Part::Work, Part::Use, Part::Use},
      {"after", &Parser::parseAfter, Part::Work, Part::Use, Part::After},
  };
  for (const Rule &rule : rules)
    if (rule.head == head) {
      if (part < rule.least || part > rule.most)
        return line.bad(fmt::format("\"{}\" is out of place", head));
      MGPU_TRY((this->*rule.parse)(line));
      part = rule.then;
      return {};
    }
  if (head == "node" && part != Part::Node) {
    part = Part::Node;
    return parseNode(line);
  }
  if ((head == "argument" || head == "result") && part == Part::None) {
    MGPU_TRY_ASSIGN(ProgramArgument argument, parseArgument(line));
    (head == "result" ? program.results : program.arguments)
        .push_back(std::move(argument));
    return {};
  }
  return line.bad(fmt::format("unexpected \"{}\"", head.substr(0, 40)));
}

void Parser::makeRoom() {
  static constexpr std::string_view node = "\nnode ";
  size_t count = 0;
  for (size_t at = text.find(node); at != std::string_view::npos;
       at = text.find(node, at + node.size()))
    ++count;
  program.dag.nodes.reserve(count);
}

Result<Program> Parser::run() {
  MGPU_TRY(parseHeader());
  makeRoom();
  for (;;) {
    LineReader line = lines.next();
    std::string_view head = line.word();
    if (head.empty() && lines.atEnd())
      return line.bad("the text ends without \"end\"; it is cut short");
    if (head == "end" && part != Part::Node) {
      MGPU_TRY(line.expectEnd());
      break;
    }
    MGPU_TRY(parseLine(line, head));
  }
  if (LineReader line = lines.next(); !line.atEnd())
    return line.bad("text after \"end\"");
  if (Result<void> ok = program.check(); !ok)
    return fail(ok.error().kind, "program: " + ok.error().message);
  return std::move(program);
}

} // namespace

Result<Program> readProgram(std::string_view text, const BlobReader &blobs) {
  return Parser(text, blobs).run();
}

} // namespace mgpu::planner
