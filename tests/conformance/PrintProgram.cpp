// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/conformance/RandomProgram.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::conformance {

std::string argumentName(int root) { return fmt::format("b{}", root); }

namespace {

std::string typeOf(const std::vector<int64_t> &shape, ElementType element,
                   const std::string &layout = "") {
  return fmt::format("memref<{}x{}{}>", fmt::join(shape, "x"),
                     toString(element), layout);
}

std::string deviceName(int device) {
  return device < 0 ? "%host" : fmt::format("%d{}", device);
}

class Printer {
public:
  explicit Printer(const RandomProgram &program) : program(program) {}
  std::string print();

private:
  struct Named {
    std::string name, type;
  };
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args &&...args) {
    text += indent + fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  Named view(const View &view);
  std::vector<Named> viewsOf(const std::vector<View> &views);
  std::string devicesOf(const std::vector<View> &views, const char *each);
  std::string streamOf(const Op &op, size_t part) const;
  std::string streamsOf(const Op &op) const;
  void print(const Op &op);
  void printOnce(const Op &op);
  void printShards(const Op &op);
  void printLaunch(const Op &op);
  void printBody(const Op &op, const std::vector<Named> &from, const Named &to,
                 const std::string &scalar);
  void printCollective(const Op &op);

  const RandomProgram &program;
  std::string text, indent = "  ";
  int numNames = 0;
};

std::string names(const auto &values) {
  std::string list;
  for (const auto &value : values)
    list += (list.empty() ? "" : ", ") + value.name;
  return list;
}

std::string types(const auto &values) {
  std::string list;
  for (const auto &value : values)
    list += (list.empty() ? "" : ", ") + value.type;
  return list;
}

std::string repeated(const std::string &word, size_t count) {
  std::string list;
  for (size_t k = 0; k < count; ++k)
    list += (k ? ", " : "") + word;
  return list;
}

Printer::Named Printer::view(const View &view) {
  const Root &root = program.roots[view.root];
  std::string base = "%" + argumentName(view.root);
  std::string rootType = typeOf(root.shape, root.type);
  if (view.isWholeRoot)
    return {base, rootType};
  std::vector<int64_t> strides(view.sizes.size());
  int64_t offset = 0, stride = 1;
  for (size_t k = view.sizes.size(); k-- > 0; stride *= root.shape[k]) {
    strides[k] = view.steps[k] * stride;
    offset += view.offsets[k] * stride;
  }
  std::vector<std::string> offsets;
  for (int64_t at : view.offsets)
    offsets.push_back(view.hasDynamicType ? fmt::format("%c{}", at)
                                          : std::to_string(at));
  std::string layout =
      fmt::format(", strided<[{}]{}>", fmt::join(strides, ", "),
                  view.hasDynamicType ? ", offset: ?"
                  : offset            ? fmt::format(", offset: {}", offset)
                                      : "");
  Named result{fmt::format("%v{}", numNames++),
               typeOf(view.sizes, root.type, layout)};
  line("{} = memref.subview {}[{}] [{}] [{}] : {} to {}", result.name, base,
       fmt::join(offsets, ", "), fmt::join(view.sizes, ", "),
       fmt::join(view.steps, ", "), rootType, result.type);
  return result;
}

std::vector<Printer::Named> Printer::viewsOf(const std::vector<View> &views) {
  std::vector<Named> named;
  for (const View &one : views)
    named.push_back(view(one));
  return named;
}

std::string Printer::devicesOf(const std::vector<View> &views,
                               const char *each) {
  std::string list;
  for (const View &one : views)
    list += (list.empty() ? "" : ", ") +
            (each ? each : deviceName(program.roots[one.root].device));
  return list;
}

std::string Printer::streamOf(const Op &op, size_t part) const {
  if (part >= op.streams.size() || op.streams[part] < 0)
    return "";
  return fmt::format(" stream %s{} : !mgpu.stream", op.streams[part]);
}

std::string Printer::streamsOf(const Op &op) const {
  if (op.streams.empty())
    return "";
  std::string list;
  for (int stream : op.streams)
    list += fmt::format("{}%s{}", list.empty() ? "" : ", ", stream);
  return fmt::format(" streams [{}] : {}", list,
                     repeated("!mgpu.stream", op.streams.size()));
}

void Printer::printShards(const Op &op) {
  bool out = op.kind != Op::Gather;
  const View &wholeView = out ? op.from[0] : op.to[0];
  const std::vector<View> &partViews = out ? op.to : op.from;
  Named whole = view(wholeView);
  std::vector<Named> parts = viewsOf(partViews);
  std::string device = deviceName(program.roots[wholeView.root].device);
  std::string devices = devicesOf(partViews, nullptr);
  std::string deviceTypes = devicesOf(partViews, "!mgpu.device");
  if (op.kind == Op::Replicate)
    return line("mgpu.replicate {}, {}, [{}], [{}]{} : {}, !mgpu.device, "
                "[{}], [{}]",
                whole.name, device, devices, names(parts), streamsOf(op),
                whole.type, deviceTypes, types(parts));
  std::vector<int64_t> sizes;
  for (const View &part : partViews)
    sizes.push_back(part.sizes[op.axis]);
  line("mgpu.{} {}, {}, [{}], [{}]{}{} axis = {} : {}, !mgpu.device, [{}], "
       "[{}]",
       op.kind == Op::Gather ? "gather"
       : op.isUneven         ? "uneven_scatter"
                             : "scatter",
       whole.name, device, names(parts), devices, streamsOf(op),
       op.isUneven ? fmt::format(" sliceSizes = [{}]", fmt::join(sizes, ", "))
                   : "",
       op.axis, whole.type, types(parts), deviceTypes);
}

void Printer::printBody(const Op &op, const std::vector<Named> &from,
                        const Named &to, const std::string &scalar) {
  const View &d = op.to[0];
  ElementType element = program.roots[d.root].type;
  bool isInteger = element == ElementType::I32;
  std::string t(toString(element));
  bool is2d = d.sizes.size() == 2;
  std::string at = is2d ? "%i, %j" : "%j", row = is2d ? "%i, " : "";
  int64_t columns = d.sizes.back();
  auto two = [&](const char *name, const std::string &result,
                 const std::string &x, const std::string &y) {
    line("{} = arith.{}{} {}, {} : {}", result, name, isInteger ? "i" : "f", x,
         y, t);
  };
  auto load = [&](const std::string &result, const Named &memref,
                  const std::string &index) {
    line("{} = memref.load {}[{}] : {}", result, memref.name, index,
         memref.type);
  };
  auto store = [&](const std::string &value, const std::string &index) {
    line("memref.store {}, {}[{}] : {}", value, to.name, index, to.type);
  };
  auto storeClamped = [&](const std::string &value) {
    const char *suffix = isInteger ? "si" : "imumf";
    line("%low = arith.constant {} : {}", isInteger ? "-8" : "-8.0", t);
    line("%high = arith.constant {} : {}", isInteger ? "8" : "8.0", t);
    line("%atLeast = arith.max{} {}, %low : {}", suffix, value, t);
    line("%clamped = arith.min{} %atLeast, %high : {}", suffix, t);
    store("%clamped", at);
  };
  auto convert = [&](const std::string &result, const std::string &value) {
    if (isInteger)
      line("{} = arith.addi {}, %zero : i32", result, value);
    else
      line("{} = arith.sitofp {} : i32 to {}", result, value, t);
  };
  line("%zero = arith.constant 0 : i32");
  switch (op.kernel) {
  case KernelTemplate::Fill:
    line("%x = arith.index_cast {} : index to i32", is2d ? "%i" : "%c0");
    line("%y = arith.index_cast %j : index to i32");
    line("%x3 = arith.muli %x, %k3 : i32");
    line("%y2 = arith.muli %y, %k2 : i32");
    line("%xy = arith.addi %x3, %y2 : i32");
    line("%xys = arith.addi %xy, {} : i32", scalar);
    line("%mod = arith.remsi %xys, %k5 : i32");
    line("%whole = arith.subi %mod, %k2 : i32");
    convert("%value", "%whole");
    return store("%value", at);
  case KernelTemplate::Axpy:
    convert("%s", scalar);
    load("%x", from[0], at);
    load("%y", from[1], at);
    two("mul", "%sx", "%s", "%x");
    two("add", "%sum", "%sx", "%y");
    return storeClamped("%sum");
  case KernelTemplate::Stencil:
    load("%x", from[0], at);
    line("%next = arith.addi %j, %c1 : index");
    line("%inside = arith.cmpi slt, %next, %c{} : index", columns);
    line("%sum = scf.if %inside -> ({}) {{", t);
    load("%y", from[0], row + "%next");
    two("add", "%both", "%x", "%y");
    line("scf.yield %both : {}", t);
    line("}} else {{");
    line("scf.yield %x : {}", t);
    line("}}");
    return storeClamped("%sum");
  case KernelTemplate::Reverse:
    line("%mirror = arith.subi %c{}, %j : index", columns - 1);
    load("%x", from[0], row + "%mirror");
    return store("%x", at);
  case KernelTemplate::RowSum:
    convert("%start", "%zero");
    line("%sum = scf.for %k = %c0 to %c{} step %c1 iter_args(%acc = %start) -> "
         "({}) {{",
         columns, t);
    load("%x", from[0], row + "%k");
    two("add", "%more", "%acc", "%x");
    line("scf.yield %more : {}", t);
    line("}}");
    load("%own", from[0], at);
    two("sub", "%rest", "%sum", "%own");
    return storeClamped("%rest");
  case KernelTemplate::Evens:
    line("%half = arith.cmpi slt, %j, %c{} : index", columns / 2);
    line("scf.if %half {{");
    load("%x", from[0], at);
    line("%even = arith.muli %j, %c2 : index");
    store("%x", row + "%even");
    return line("}}");
  case KernelTemplate::Guarded:
    line("%ij = arith.addi {}, %j : index", is2d ? "%i" : "%c0");
    line("%bound = arith.index_cast {} : i32 to index", scalar);
    line("%below = arith.cmpi slt, %ij, %bound : index");
    line("scf.if %below {{");
    load("%x", to, at);
    load("%y", from[0], at);
    two("add", "%sum", "%x", "%y");
    storeClamped("%sum");
    return line("}}");
  }
}

void Printer::printLaunch(const Op &op) {
  Named to = view(op.to[0]);
  std::vector<Named> from = viewsOf(op.from);
  const std::vector<int64_t> &sizes = op.to[0].sizes;
  bool is2d = sizes.size() == 2;
  // Computed, so that it is an argument of the kernel and no part of it.
  std::string scalar = fmt::format("%n{}", numNames++);
  line("{} = arith.addi %k{}, {} : i32", scalar, op.scalar,
       op.addsTrip ? "%trip32" : "%k0");
  int64_t blocks = is2d ? sizes[0] : 2,
          threads = is2d ? sizes[1] : sizes[0] / 2;
  line("mgpu.launch {} grid(%c{}) block(%c{}){} {{",
       deviceName(program.roots[op.to[0].root].device), blocks, threads,
       op.streams.empty() || op.streams[0] < 0
           ? ""
           : fmt::format(" stream %s{}", op.streams[0]));
  indent += "  ";
  if (is2d) {
    line("%i = gpu.block_id x");
    line("%j = gpu.thread_id x");
  } else {
    line("%block = gpu.block_id x");
    line("%thread = gpu.thread_id x");
    line("%base = arith.muli %block, %c{} : index", threads);
    line("%j = arith.addi %base, %thread : index");
  }
  printBody(op, from, to, scalar);
  indent.resize(indent.size() - 2);
  line("}}");
}

static std::string pairsText(const std::vector<std::pair<int, int>> &pairs) {
  std::string text;
  for (auto [source, target] : pairs)
    text += fmt::format("{}[{}, {}]", text.empty() ? "" : ", ", source, target);
  return text;
}

void Printer::printCollective(const Op &op) {
  std::vector<Named> to = viewsOf(op.to), from = viewsOf(op.from);
  for (int r : op.callOrder) {
    std::string tail = fmt::format("%comm{}", op.communicator),
                stream = streamOf(op, r);
    std::string kind(toString(op.collective)), attributes;
    switch (op.collective) {
    case CollectiveKind::Broadcast:
      line("mgpu.broadcast {}, {}, %c{}{} : {}, !mgpu.communicator", to[r].name,
           tail, op.root, stream, to[r].type);
      continue;
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllReduce:
      tail += ", " + std::string(toString(op.reduction));
      break;
    default:
      break;
    }
    if (op.collective == CollectiveKind::AllToAll)
      attributes = fmt::format(" splitAxis = {} concatAxis = {}", op.axis,
                               op.concatAxis);
    else if (op.collective == CollectiveKind::Permute)
      attributes = fmt::format(" pairs = [{}]", pairsText(op.pairs));
    else if (op.axis > 0 && op.collective != CollectiveKind::AllReduce)
      attributes = fmt::format(" axis = {}", op.axis);
    line("mgpu.{} {}, {}, {}{}{} : {}, {}, !mgpu.communicator", kind,
         from[r].name, to[r].name, tail, stream, attributes, from[r].type,
         to[r].type);
  }
}

void Printer::printOnce(const Op &op) {
  switch (op.kind) {
  case Op::Alloc:
    for (int id : op.roots) {
      const Root &root = program.roots[id];
      std::string type = typeOf(root.shape, root.type);
      if (root.device < 0)
        line("%{} = memref.alloc() : {}", argumentName(id), type);
      else
        line("%{} = mgpu.alloc {} : !mgpu.device -> {}", argumentName(id),
             deviceName(root.device), type);
    }
    return;
  case Op::Free:
    for (int id : op.roots)
      line("mgpu.free %{}, {} : {}, !mgpu.device", argumentName(id),
           deviceName(program.roots[id].device),
           typeOf(program.roots[id].shape, program.roots[id].type));
    return;
  case Op::Copy: {
    Named to = view(op.to[0]), from = view(op.from[0]);
    return line("mgpu.memcpy {}, {}, {}, {}{} : {}, {}, !mgpu.device, "
                "!mgpu.device",
                to.name, from.name,
                deviceName(program.roots[op.to[0].root].device),
                deviceName(program.roots[op.from[0].root].device),
                streamOf(op, 0), to.type, from.type);
  }
  case Op::Scatter:
  case Op::Gather:
  case Op::Replicate:
    return printShards(op);
  case Op::Launch:
    return printLaunch(op);
  case Op::Collective:
    return printCollective(op);
  case Op::SendRecv: {
    Named to = view(op.to[0]), from = view(op.from[0]);
    // callOrder: receiver's rank, sender's rank, 1 if the receiver calls first
    for (bool receives : {op.callOrder[2] == 1, op.callOrder[2] != 1})
      line("mgpu.{} {}, %comm{}, %c{}{} : {}, !mgpu.communicator",
           receives ? "recv" : "send", receives ? to.name : from.name,
           op.communicator, op.callOrder[receives ? 1 : 0],
           streamOf(op, receives ? 0 : 1), receives ? to.type : from.type);
    return;
  }
  case Op::StreamWait: {
    std::string list;
    for (int stream : op.streams)
      list += fmt::format("{}%s{}", list.empty() ? "" : ", ", stream);
    return line("mgpu.stream_wait {} : {}", list,
                repeated("!mgpu.stream", op.streams.size()));
  }
  case Op::SyncStream:
    return line("mgpu.sync_stream %s{} : !mgpu.stream", op.streams[0]);
  case Op::SyncDevice:
    return line("mgpu.sync_device {} : !mgpu.device", deviceName(op.device));
  }
}

void Printer::print(const Op &op) {
  if (op.repeat == 1)
    return printOnce(op);
  line("scf.for %step{} = %c0 to %c{} step %c1 {{", numNames++, op.repeat);
  indent += "  ";
  printOnce(op);
  indent.resize(indent.size() - 2);
  line("}}");
}

std::string Printer::print() {
  indent = "";
  line("mgpu.device_config @config #mgpu.device_config<numDevices = {}>\n",
       program.numDevices);
  std::string arguments;
  for (int id = 0; id < int(program.roots.size()); ++id) {
    const Root &root = program.roots[id];
    if (!root.isArgument)
      continue;
    arguments += fmt::format(
        "{}%{}: {}{}", arguments.empty() ? "" : ",\n    ", argumentName(id),
        typeOf(root.shape, root.type),
        root.role.empty() ? "" : " {mgpu.role = \"" + root.role + "\"}");
  }
  line("func.func @main({}) {{", arguments);
  indent = "  ";
  line("%cm1 = arith.constant -1 : index");
  int64_t largest = 48; // steps and counts
  for (const Root &root : program.roots)
    for (int64_t size : root.shape)
      largest = std::max(largest, size);
  for (int64_t k = 0; k <= largest; ++k)
    line("%c{0} = arith.constant {0} : index", k);
  for (int k = 0; k <= 9; ++k)
    line("%k{0} = arith.constant {0} : i32", k);
  line("%host = mgpu.get_device %cm1 : !mgpu.device");
  for (int d = 0; d < program.numDevices; ++d)
    line("%d{0} = mgpu.get_device %c{0} : !mgpu.device", d);
  for (size_t s = 0; s < program.streamDevices.size(); ++s)
    line("%s{} = mgpu.create_stream %d{} : !mgpu.device -> !mgpu.stream", s,
         program.streamDevices[s]);
  for (size_t c = 0; c < program.communicators.size(); ++c)
    line("%comm{} = mgpu.create_communicator %d{} : {} -> !mgpu.communicator",
         c, fmt::join(program.communicators[c], ", %d"),
         repeated("!mgpu.device", program.communicators[c].size()));
  for (size_t k = 0; k < program.ops.size(); ++k) {
    if (program.loop && k == program.loop->begin) {
      line("scf.for %trip = %c0 to %c{} step %c1 {{", program.loop->trips);
      indent += "  ";
      line("%trip32 = arith.index_cast %trip : index to i32");
    }
    print(program.ops[k]);
    if (program.loop && k + 1 == program.loop->end) {
      indent.resize(indent.size() - 2);
      line("}}");
    }
  }
  line("return");
  indent = "";
  line("}}");
  return std::move(text);
}

} // namespace

std::string printProgram(const RandomProgram &program) {
  return Printer(program).print();
}

} // namespace mgpu::conformance
