// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/conformance/CollectivePrograms.h"

#include "support/Assert.h"
#include "support/Random.h"

namespace mgpu::conformance {

namespace {

using enum CollectiveKind;

class Writer {
public:
  explicit Writer(ElementType type) : type(type), machine(program) {
    program.numDevices = 4;
    program.communicators = {{0, 1}, {3, 1}, {0, 1, 2}, {2, 0, 3, 1}, {2}};
    program.streamDevices = {0, 1, 3};
  }

  RandomProgram make() {
    for (int group = 0; group < int(program.communicators.size()); ++group) {
      for (int rank = 1; rank <= 3; ++rank)
        for (int axis = 0; axis < rank; ++axis) {
          write(AllGather, group, rank, axis, axis);
          write(ReduceScatter, group, rank, axis, axis);
          for (int concat = 0; concat < rank; ++concat)
            write(AllToAll, group, rank, axis, concat);
        }
      for (int pattern = 0; pattern < 5; ++pattern)
        write(Permute, group, 1 + pattern % 3, pattern, 0);
    }
    program.final = machine.memory;
    return std::move(program);
  }

private:
  enum class Form { Whole, Gaps, InPlace };

  double value() {
    return type == ElementType::I1 ? double(random.below(2))
                                   : double(random.below(5)) - 2;
  }

  void emit(Op op) {
    MGPU_CHECK(machine.run(op), "small values stay exact");
    program.ops.push_back(std::move(op));
  }

  int root(int device, const std::vector<int64_t> &shape) {
    program.roots.push_back({device, type, shape, device < 0, "", true});
    program.initial.emplace_back();
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    machine.memory.resize(program.roots.size());
    if (device < 0)
      for (int64_t k = 0; k < count; ++k)
        program.initial.back().push_back(value());
    machine.memory.back() = program.initial.back();
    return int(program.roots.size()) - 1;
  }
  View whole(int root) const {
    const std::vector<int64_t> &shape = program.roots[root].shape;
    return {root,  std::vector<int64_t>(shape.size(), 0),
            shape, std::vector<int64_t>(shape.size(), 1),
            true,  false};
  }
  void copy(int to, int from, int stream) {
    Op op{Op::Copy};
    op.to = {whole(to)};
    op.from = {whole(from)};
    op.streams = {stream};
    emit(std::move(op));
  }

  /// An array on a device, filled from an argument. With gaps there is
  /// something before, between and behind the elements of its view.
  View array(int device, std::vector<int64_t> sizes, bool hasGaps, int stream) {
    std::vector<int64_t> shape = sizes;
    for (int64_t &size : shape)
      size = hasGaps ? 2 * size + 2 : size;
    Op alloc{Op::Alloc};
    alloc.roots = {root(device, shape)};
    emit(alloc);
    int argument = root(-1, shape);
    copy(alloc.roots[0], argument, stream);
    filled.push_back({alloc.roots[0], argument, stream});
    View view = whole(alloc.roots[0]);
    if (hasGaps) {
      view.isWholeRoot = false;
      view.sizes = std::move(sizes);
      for (size_t k = 0; k < view.sizes.size(); ++k) {
        view.offsets[k] = int64_t(k + 1) % 3;
        view.steps[k] = 1 + int64_t(k) % 2;
      }
    }
    return view;
  }

  void write(CollectiveKind kind, int group, int rank, int axis, int concat) {
    const std::vector<int> devices = program.communicators[group];
    const auto n = int(devices.size());
    Op op{Op::Collective};
    op.collective = kind;
    op.communicator = group;
    std::vector<int64_t> sizes{2, 3, 1};
    sizes.resize(size_t(rank));
    std::vector<int64_t> send = sizes, recv = sizes;
    auto form = Form(++calls % 3);
    bool isSame = true; // both sides have one shape in one order
    if (kind == Permute) {
      op.pairs = pairsOf(axis, n);
    } else {
      op.axis = axis;
      op.concatAxis = concat;
      isSame = axis == concat && kind != ReduceScatter;
      (kind == AllGather ? recv : send)[axis] *= n;
      if (kind == AllToAll) {
        recv[concat] *= n;
      }
      // As long as the result, each with its own slice.
      if (kind == AllGather && form == Form::InPlace)
        send = recv;
    }
    op.reduction = ReductionKind(calls / 3 % 4);
    if (type == ElementType::I1 && op.reduction == ReductionKind::Sum)
      op.reduction = ReductionKind::Max; // 1 + 1 is 1
    for (int r = 0; r < n; ++r) {
      int stream = form == Form::Gaps ? -1 : streamOf(devices[r]);
      op.streams.push_back(stream);
      op.callOrder.push_back((r + calls) % n);
      op.from.push_back(array(devices[r], send, form != Form::Whole, stream));
      View to = op.from.back();
      if (form != Form::InPlace || (!isSame && kind != ReduceScatter)) {
        to = array(devices[r], recv, form == Form::Gaps, stream);
      } else if (kind == ReduceScatter) { // its own slice of what it sends
        to.sizes = recv;
        to.offsets[axis] += r * recv[axis] * to.steps[axis];
      }
      op.to.push_back(std::move(to));
    }
    emit(std::move(op));
    for (auto [buffer, argument, stream] : std::exchange(filled, {}))
      copy(argument, buffer, stream);
    for (int device = 0; device < program.numDevices; ++device) {
      Op sync{Op::SyncDevice};
      sync.device = device;
      emit(std::move(sync));
    }
  }

  int streamOf(int device) const {
    for (int s = 0; s < int(program.streamDevices.size()); ++s)
      if (program.streamDevices[s] == device)
        return s;
    return -1;
  }

  /// Pattern 0 has no pairs, 1 is a shift, 2 goes all around, 3 is backwards,
  /// so that a rank in the middle keeps its own, in 4 the first sends to the
  /// last.
  static std::vector<std::pair<int, int>> pairsOf(int pattern, int n) {
    std::vector<std::pair<int, int>> pairs;
    for (int r = 0; r < n; ++r)
      if ((pattern == 1 && r + 1 < n) || pattern == 2)
        pairs.emplace_back(r, (r + 1) % n);
      else if (pattern == 3)
        pairs.emplace_back(r, n - 1 - r);
    if (pattern == 4)
      pairs.emplace_back(0, n - 1);
    return pairs;
  }

  ElementType type;
  RandomProgram program;
  Machine machine;
  Random random{7};
  int calls = 0;
  struct Filled {
    int buffer, argument, stream;
  };
  std::vector<Filled> filled; ///< for the next collective
};

} // namespace

RandomProgram makeCollectiveProgram(ElementType type) {
  return Writer(type).make();
}

} // namespace mgpu::conformance
