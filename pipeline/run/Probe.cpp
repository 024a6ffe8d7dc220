// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/run/Probe.h"

#include "device/host/KernelObject.h"
#include "pipeline/build/Kernels.h"
#include "support/Array.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::pipeline {

using namespace planner;

namespace {

/// Bytes before and after a buffer; a multiple of every element.
constexpr int64_t guard = 4096;

/// The most bytes that the buffers of one launch may have.
constexpr uint64_t mostBytes = uint64_t(1) << 30;

/// Calls `visit` for the offset of each element of a box.
template <typename Visit>
void eachElement(const Box &box, Visit visit) {
  std::vector<int64_t> index(box.sizes.size(), 0);
  for (int64_t left = box.numElements(); left > 0; --left) {
    int64_t at = box.offset;
    for (size_t k = 0; k < index.size(); ++k)
      at += index[k] * box.strides[k];
    visit(at);
    for (size_t k = index.size(); k-- > 0;) {
      if (++index[k] < box.sizes[k])
        break;
      index[k] = 0;
    }
  }
}

bool isWhole(ElementType type) {
  return type == ElementType::I1 || type == ElementType::I8 ||
         type == ElementType::I16 || type == ElementType::I32 ||
         type == ElementType::I64 || type == ElementType::Index;
}

/// A buffer that a launch is given, and what may happen to its bytes.
struct Touched {
  const Buffer *buffer;
  std::vector<bool> mayRead, mayWrite;   ///< by byte
  std::vector<std::byte> before, memory; ///< with guards

  Touched(const Buffer &of, const DagNode &node, BufferId id)
      : buffer(&of), mayRead(of.sizeBytes), mayWrite(of.sizeBytes) {
    for (const BufferUse &use : node.uses)
      if (use.buffer == id)
        eachElement(use.box, [&](int64_t at) {
          for (uint32_t b = 0; b < use.box.elementBytes; ++b) {
            mayRead[size_t(at) + b] = mayRead[size_t(at) + b] || use.reads;
            mayWrite[size_t(at) + b] = mayWrite[size_t(at) + b] || use.writes;
          }
        });
  }

  /// Values that a kernel may compute with; whole numbers may be indices, and
  /// so are 0. `isOther`: another value where nothing is to be read.
  void fill(bool isOther) {
    const ElementType type = buffer->elementType;
    const uint32_t width = sizeBytes(type);
    before.assign(size_t(buffer->sizeBytes) + 2 * guard, {});
    for (size_t at = 0; at + width <= before.size(); at += width) {
      const size_t own = at - guard;
      const bool isRead = at >= guard && own < mayRead.size() && mayRead[own];
      // Neighbours differ, so that one is not taken for the other.
      const size_t index = at / width;
      const double value =
          isWhole(type)
              ? double(!isRead && ((index ^ index >> 3) & 1) != isOther)
          : isRead ? 0.25 + double(index % 5) / 4
                   : (isOther ? 1 : -1) * (2 + double(index % 13) / 8);
      storeNumber(value, type, &before[at]);
    }
    memory = before;
  }

  uint64_t address() { return reinterpret_cast<uint64_t>(&memory[guard]); }

  /// The first bytes that were written and are not to be, from the buffer's
  /// beginning; an empty range where there are none.
  std::pair<int64_t, int64_t> strayWrite() const {
    auto isStray = [&](size_t at) {
      const size_t own = at - guard;
      return memory[at] != before[at] &&
             (at < guard || own >= mayWrite.size() || !mayWrite[own]);
    };
    size_t first = 0;
    while (first < memory.size() && !isStray(first))
      ++first;
    size_t last = first;
    while (last < memory.size() && isStray(last))
      ++last;
    const size_t width = sizeBytes(buffer->elementType);
    first = first / width * width;
    last = (last + width - 1) / width * width;
    return {int64_t(first) - guard, int64_t(last) - guard};
  }
};

/// One launch on its own memory.
class Probe {
public:
  Probe(const Dag &dag, const DagNode &node)
      : dag(dag), node(node), call(std::get<KernelCall>(node.work)) {
    for (const KernelArgument &argument : call.arguments)
      if (auto *id = std::get_if<BufferId>(&argument.value))
        if (std::ranges::find(ids, *id) == ids.end()) {
          ids.push_back(*id);
          buffers.emplace_back(dag.buffer(*id), node, *id);
        }
  }

  Result<void> run(const device::KernelObject &object) {
    if (object.awaitsOthers())
      return {}; // with such values it may wait for ever
    MGPU_TRY(runWith(object, buffers.size())); // in none
    const std::vector<Touched> expected = buffers;
    for (size_t other = 0; other < buffers.size(); ++other) {
      MGPU_TRY(runWith(object, other));
      for (size_t k = 0; k < buffers.size(); ++k)
        MGPU_TRY(compare(k, expected[k], other));
    }
    return {};
  }

private:
  tl::unexpected<Error> fault(std::string what) const {
    return fail(ErrorKind::Invalid,
                fmt::format("{}{}kernel '{}' {}", node.location,
                            node.location.empty() ? "" : ": ",
                            dag.kernels[call.kernel.value].name, what));
  }

  /// With other values in buffer `other`.
  Result<void> runWith(const device::KernelObject &object, size_t other) {
    for (size_t k = 0; k < buffers.size(); ++k)
      buffers[k].fill(k == other);
    std::vector<uint64_t> arguments;
    for (const KernelArgument &argument : call.arguments) {
      auto *id = std::get_if<BufferId>(&argument.value);
      if (!id) {
        arguments.push_back(std::get<uint64_t>(argument.value));
        continue;
      }
      const size_t k = size_t(std::ranges::find(ids, *id) - ids.begin());
      arguments.push_back(buffers[k].address() +
                          uint64_t(argument.offsetBytes));
    }
    MGPU_TRY(object.ptx() ? runPtx(*object.ptx(), arguments)
                          : runBlocks(object, arguments));
    for (const Touched &each : buffers)
      if (auto [first, last] = each.strayWrite(); first < last)
        return fault(fmt::format(
            "writes bytes {} to {} of buffer '{}', which has {}; its launch "
            "does not say so",
            first, last, each.buffer->name, each.buffer->sizeBytes));
    return {};
  }

  /// Where a kernel is given as PTX, a check of its execution may come first.
  Result<void> runPtx(device::PtxKernel &kernel,
                      const std::vector<uint64_t> &arguments) {
    device::KernelNodeParams params;
    params.name = node.name;
    params.device = node.devices[0];
    params.grid = call.grid;
    params.arguments = arguments;
    params.part = call.part;
    for (Touched &each : buffers)
      params.memory.push_back({reinterpret_cast<std::byte *>(each.address()),
                               each.buffer->sizeBytes, true,
                               each.buffer->name});
    MGPU_TRY_ASSIGN(const auto options, kernel.launchOf(params));
    return kernel.run(params.device, options);
  }

  Result<void> runBlocks(const device::KernelObject &object,
                         const std::vector<uint64_t> &arguments) {
    const GridPart part = call.part.value_or(GridPart::whole(call.grid));
    const Dim3 grid = call.grid, first = part.first, count = part.count;
    const kernels::HostKernelShape &shape = object.shape();
    const uint64_t blocks = kernels::blocksAlong(shape, 0, count.x) *
                            kernels::blocksAlong(shape, 1, count.y) *
                            kernels::blocksAlong(shape, 2, count.z);
    const kernels::HostLaunch launch{
        {grid.x, grid.y, grid.z},   0, 0, blocks, {first.x, first.y, first.z},
        {count.x, count.y, count.z}};
    object.entry()(arguments.data(), &launch);
    return {};
  }

  /// Fails where the kernel wrote something else to buffer `k` than without
  /// other values in `other`.
  Result<void> compare(size_t k, const Touched &expected, size_t other) const {
    const Touched &now = buffers[k];
    const size_t width = sizeBytes(now.buffer->elementType);
    auto differ = [&](const auto &a, const auto &b, size_t at) {
      return !std::equal(&a[at], &a[at] + width, &b[at]);
    };
    for (size_t at = guard; at < now.memory.size() - guard; at += width)
      if (differ(now.memory, expected.memory, at) &&
          (differ(now.memory, now.before, at) ||
           differ(expected.memory, expected.before, at)))
        return fault(fmt::format(
            "reads of buffer '{}' what its launch does not say: byte {} of "
            "buffer '{}' comes out otherwise with other values there",
            buffers[other].buffer->name, at - guard, now.buffer->name));
    return {};
  }

  const Dag &dag;
  const DagNode &node;
  const KernelCall &call;
  std::vector<BufferId> ids;
  std::vector<Touched> buffers; ///< by place in `ids`
};

} // namespace

static Result<void> checkSize(const Dag &dag, const DagNode &node) {
  uint64_t bytes = 0;
  for (const KernelArgument &argument :
       std::get<KernelCall>(node.work).arguments)
    if (auto *id = std::get_if<BufferId>(&argument.value))
      bytes = std::max(bytes, bytes + dag.buffer(*id).sizeBytes);
  if (bytes <= mostBytes)
    return {};
  return fail(ErrorKind::Unsupported,
              fmt::format("{}: buffers of {} bytes are not probed; {} are the "
                          "most: probe the program with smaller ones",
                          node.name, bytes, mostBytes));
}

Result<void> probeAccesses(const LoadedProgram &program) {
  const Dag &dag = program.dag;
  for (const DagNode &node : dag.nodes)
    if (std::holds_alternative<KernelCall>(node.work))
      MGPU_TRY(checkSize(dag, node));
  MGPU_TRY_ASSIGN(const HostKernels compiled, hostKernels(program, ""));
  std::vector<device::KernelObject> objects;
  for (size_t k = 0; k < compiled.objects.size(); ++k) {
    MGPU_TRY_ASSIGN(auto object, device::KernelObject::load(
                                     dag.kernels[k].name, compiled.objects[k]));
    objects.push_back(std::move(object));
  }
  for (const DagNode &node : dag.nodes)
    if (auto *call = std::get_if<KernelCall>(&node.work))
      MGPU_TRY(Probe(dag, node).run(objects[call->kernel.value]));
  return {};
}

} // namespace mgpu::pipeline
