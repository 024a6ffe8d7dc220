// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dag/ProgramText.h"

#include "support/Assert.h"
#include "support/JsonFields.h"
#include "support/LineText.h"
#include "support/Sha256.h"

#include <iterator>

namespace mgpu::planner {

namespace {

class Writer {
public:
  Writer(const Program &program, Blobs &blobs)
      : program(program), dag(program.dag), blobs(blobs) {}

  std::string run() {
    add("mgpu-program {}\n", programVersion);
    add("program {} devices {} spmd {} resident {}\n", quoteText(dag.name),
        dag.numDevices, int(dag.spmd), dag.residentBytes);
    if (dag.loop != Loop())
      add("loop {} at {}\n", dag.loop.trips, quoteText(dag.loop.location));
    for (const Induction &induction : dag.loop.inductions)
      add("induction {} from {} step {}\n", induction.buffer.value,
          induction.first, induction.step);
    for (const Buffer &buffer : dag.buffers)
      write(buffer);
    for (const KernelSpec &kernel : dag.kernels)
      write(kernel);
    for (const ProgramArgument &argument : program.arguments)
      write("argument", argument);
    for (const ProgramArgument &result : program.results)
      write("result", result);
    auto edge = dag.edges.begin();
    for (uint32_t id = 0; id < dag.nodes.size(); ++id) {
      write(dag.nodes[id]);
      if (edge == dag.edges.end() || edge->to.value != id)
        continue;
      out += "after";
      for (; edge != dag.edges.end() && edge->to.value == id; ++edge)
        add(" {}{}", letterOf(edge->kind), edge->from.value);
      out += '\n';
    }
    return std::move(out) + "end\n";
  }

private:
  template <typename... T>
  void add(fmt::format_string<T...> format, T &&...values) {
    fmt::format_to(std::back_inserter(out), format, std::forward<T>(values)...);
  }
  void addDevice(DeviceId device) {
    device.isHost() ? add(" host") : add(" {}", device.value);
  }
  void addBox(const Box &box) {
    add(" {}", box.offset);
    for (size_t k = 0; k < box.sizes.size(); ++k)
      add("+{}*{}", box.sizes[k], box.strides[k]);
    add(":{}", box.elementBytes);
  }
  void addType(ElementType type, const std::vector<int64_t> &shape) {
    add(" type {} shape", toString(type));
    for (int64_t size : shape)
      add(" {}", size);
  }
  std::string store(std::span<const std::byte> bytes) {
    std::string hash = Sha256().add(bytes).hex();
    blobs.try_emplace(hash, bytes.begin(), bytes.end());
    return hash;
  }

  void write(const Buffer &buffer) {
    add("buffer {} on", quoteText(buffer.name));
    addDevice(buffer.device);
    add(" {} {} bytes {}", nameOf(buffer.role), buffer.index, buffer.sizeBytes);
    addType(buffer.elementType, buffer.shape);
    if (buffer.role == BufferRole::Constant)
      add(" contents {}", store(buffer.contents));
    out += '\n';
  }

  void write(const KernelSpec &kernel) {
    add("kernel {} block {} {} {} arguments {} hash {} at {}",
        quoteText(kernel.name), kernel.block.x, kernel.block.y, kernel.block.z,
        kernel.numArguments, quoteText(kernel.hash),
        quoteText(kernel.location));
    auto storeText = [&](const std::string &text) {
      return store(std::as_bytes(std::span(text)));
    };
    if (kernel.facts)
      add(" facts {}", storeText(JsonFields::text(*kernel.facts)));
    if (auto *module = std::get_if<MlirKernel>(&kernel.source))
      add(" source {}", storeText(module->text));
    if (const CudaFile *file = kernel.cudaFile()) {
      add(" cuda {} text {} reference {}", quoteText(JsonFields::text(*file)),
          storeText(file->text), storeText(file->reference));
      if (!file->host.empty())
        add(" host {} {}", quoteText(file->hostEntry), storeText(file->host));
      for (const auto &[arch, cubin] : file->cubins)
        add(" cubin {} {}", quoteText(arch), storeText(cubin));
    }
    out += '\n';
  }

  void write(const char *head, const ProgramArgument &argument) {
    add("{} {} {}", head, quoteText(argument.name), toString(argument.role));
    addType(argument.elementType, argument.shape);
    if (argument.buffer)
      add(" buffer {}", argument.buffer->value);
    else
      add(" value {}", quoteText(argument.value));
    out += '\n';
  }

  void write(const DagNode &node) {
    add("node {} {} on", quoteText(node.name), toString(node.phase));
    for (DeviceId device : node.devices)
      addDevice(device);
    add(" at {} cost {} {} {} {}", quoteText(node.location),
        numberText(node.flops), node.bytesRead, node.bytesWritten,
        node.outBytes);
    if (const auto &asks = node.asks)
      add(" asks {} {} {} {}", numberText(asks->instructions),
          numberText(asks->lines), numberText(asks->movedBytes),
          asks->flightBytes);
    if (node.asks && node.asks->blocks > 0)
      add(" blocks {}", numberText(node.asks->blocks));
    if (node.part)
      add(" in {} {} {}", toString(node.part->kind), node.part->microbatch,
          node.part->stage);
    if (node.isMatmul)
      out += " matmul";
    if (node.durationUs)
      add(" for {}", numberText(*node.durationUs));
    out += '\n';
    std::visit([&](const auto &work) { write(work); }, node.work);
    for (const BufferUse &use : node.uses) {
      add("use {} {}{}", use.buffer.value,
          use.reads    ? "r"
          : use.writes ? ""
                       : "-",
          use.writes ? "w" : "");
      addBox(use.box);
      if (use.blockSteps != BufferUse().blockSteps)
        add(" by {} {} {}", use.blockSteps[0], use.blockSteps[1],
            use.blockSteps[2]);
      out += '\n';
    }
  }

  void write(const KernelCall &call) {
    add("launch {} grid {} {} {}", call.kernel.value, call.grid.x, call.grid.y,
        call.grid.z);
    if (call.part)
      add(" part {} {} {} {} {} {}", call.part->first.x, call.part->first.y,
          call.part->first.z, call.part->count.x, call.part->count.y,
          call.part->count.z);
    out += " with";
    for (const KernelArgument &argument : call.arguments) {
      if (auto *buffer = std::get_if<BufferId>(&argument.value))
        add(" b{}+{}", buffer->value, argument.offsetBytes);
      else
        add(" s{:x}+{}", std::get<uint64_t>(argument.value),
            argument.offsetBytes);
    }
    out += '\n';
  }
  void write(const CopyCall &call) {
    add("copy {}", call.source.value);
    addBox(call.sourceBox);
    add(" {}", call.destination.value);
    addBox(call.destinationBox);
    out += '\n';
  }
  void write(const CollectiveCall &call) {
    add("collective {} {} {} root {} communicator {}", toString(call.kind),
        toString(call.reduction), toString(call.elementType), call.root,
        call.communicator);
    if (!call.pairs.empty())
      out += " pairs";
    for (const RankPair &pair : call.pairs)
      add(" {} {}", pair.source, pair.target);
    out += '\n';
    for (const CollectiveMember &member : call.members) {
      add("member");
      addDevice(member.device);
      add(" send {}", member.send.value);
      addBox(member.sendBox);
      add(" recv {}", member.recv.value);
      addBox(member.recvBox);
      out += '\n';
    }
  }
  void write(const OpaqueCall &call) {
    add("opaque {} {} {} group {}", int(call.isCollective), toString(call.kind),
        call.bytes, call.group);
    if (call.isSlice)
      out += " slice";
    if (call.splittable > 0)
      add(" splittable {}", call.splittable);
    if (call.smShare < 1)
      add(" share {}", call.smShare);
    out += '\n';
  }

  const Program &program;
  const Dag &dag;
  Blobs &blobs;
  std::string out;
};

} // namespace

/// Whether the text of a sound program reads back as the program. It is looked
/// at while the program is small.
[[maybe_unused]] static bool
readsBack(std::string_view text, const Program &program, const Blobs &blobs) {
  if (program.dag.nodes.size() > 256 || !program.check())
    return true;
  Result<Program> back = readProgram(
      text, [&](const std::string &hash) -> Result<std::vector<std::byte>> {
        return blobs.at(hash);
      });
  Blobs again;
  return back && Writer(*back, again).run() == text;
}

std::string toText(const Program &program, Blobs &blobs) {
  std::string text = Writer(program, blobs).run();
  MGPU_ASSERT(readsBack(text, program, blobs),
              "a program's text reads back as the program");
  return text;
}

Result<bool> readFlag(LineReader &line) {
  std::string_view word = line.word();
  if (word != "0" && word != "1")
    return line.bad("expected 0 or 1");
  return word == "1";
}

Result<ElementType> readElementType(LineReader &line) {
  std::string_view word = line.word();
  std::optional<ElementType> type = parseElementType(word);
  if (!type)
    return line.bad(
        fmt::format("\"{}\" is not an element type", word.substr(0, 40)));
  return *type;
}

Result<CollectiveKind> readCollectiveKind(LineReader &line) {
  return readChoice(line, "collective", CollectiveKind::SendRecv,
                    [](CollectiveKind kind) { return toString(kind); });
}

Result<DeviceId> readDevice(LineReader &line) {
  if (line.peek() == "host") {
    line.word();
    return DeviceId::host();
  }
  MGPU_TRY_ASSIGN(uint32_t number, line.integer<uint32_t>("device"));
  if (number >= maxDevices)
    return line.bad(fmt::format("there is no device {}", number));
  return DeviceId{int32_t(number)};
}

Result<BufferId> readBufferId(LineReader &line) {
  MGPU_TRY_ASSIGN(uint32_t number, line.integer<uint32_t>("buffer number"));
  return BufferId{number};
}

Result<Box> readBox(LineReader &line) {
  std::string_view word = line.word();
  Box box;
  auto part = [&](std::string_view stops) {
    std::string_view text = word.substr(0, word.find_first_of(stops));
    word.remove_prefix(text.size());
    return text;
  };
  auto number = [&](std::string_view text) {
    return line.integerOf<int64_t>(text, "figure of a box");
  };
  MGPU_TRY_ASSIGN(box.offset, number(part("+:")));
  while (word.starts_with('+')) {
    word.remove_prefix(1);
    MGPU_TRY_ASSIGN(int64_t size, number(part("*")));
    if (word.empty())
      return line.bad("a box lacks a stride");
    word.remove_prefix(1);
    MGPU_TRY_ASSIGN(int64_t stride, number(part("+:")));
    box.sizes.push_back(size);
    box.strides.push_back(stride);
  }
  if (!word.starts_with(':'))
    return line.bad("a box lacks the width of its elements");
  MGPU_TRY_ASSIGN(box.elementBytes,
                  line.integerOf<uint32_t>(word.substr(1), "width"));
  return box;
}

Result<Dim3> readDimensions(LineReader &line) {
  Dim3 dim;
  for (uint32_t *size : {&dim.x, &dim.y, &dim.z}) {
    MGPU_TRY_ASSIGN(*size, line.integer<uint32_t>("dimension"));
  }
  return dim;
}

Result<void> readTypeAndShape(LineReader &line, ElementType &type,
                              std::vector<int64_t> &shape) {
  MGPU_TRY(line.keyword("type"));
  MGPU_TRY_ASSIGN(type, readElementType(line));
  MGPU_TRY(line.keyword("shape"));
  while (!line.atEnd() && line.peek()[0] >= '0' && line.peek()[0] <= '9') {
    MGPU_TRY_ASSIGN(int64_t size, line.integer<int64_t>("size"));
    shape.push_back(size);
  }
  return {};
}

} // namespace mgpu::planner
