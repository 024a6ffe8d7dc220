// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tests/conformance/RandomProgram.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

namespace mgpu::conformance {

namespace {

const std::vector<std::vector<int64_t>> rootShapes{{24}, {48}, {4, 6}, {6, 8}};
const std::vector<ElementType> kernelTypes{ElementType::F32, ElementType::F32,
                                           ElementType::F64, ElementType::BF16,
                                           ElementType::I32};
const std::vector<ElementType> otherTypes{ElementType::F16, ElementType::I8,
                                          ElementType::I64};

class Generator {
public:
  explicit Generator(uint64_t seed) : random(seed), machine(program) {}
  RandomProgram make();

private:
  // Not std::uniform_int_distribution: its outputs differ between libraries.
  int below(int n) { return int(random() % uint64_t(n)); }
  bool oneIn(int n) { return below(n) == 0; }
  template <typename T>
  const T &pick(const std::vector<T> &from) {
    return from[below(int(from.size()))];
  }
  ElementType anyType() {
    return oneIn(3) ? pick(otherTypes) : pick(kernelTypes);
  }
  int anyDevice() { return below(program.numDevices); }
  std::vector<int> shuffled(int count);

  bool emit(Op op);
  int argument(ElementType type, const std::vector<int64_t> &shape);
  int fresh(int device, ElementType type, const std::vector<int64_t> &shape);
  View whole(int root) const;
  View pickView(int device, ElementType type, const std::vector<int64_t> &sizes,
                int variety = 4);
  bool disjoint(const View &a, const View &b) const;
  int streamOf(int device);
  void syncAll();

  void copy();
  void shards();
  void launch();
  void fit(Op &op, int ranks, std::vector<int64_t> &send,
           std::vector<int64_t> &recv);
  void collective();
  void sendRecv();
  void order();
  void recycle();

  std::mt19937_64 random;
  RandomProgram program;
  Machine machine;
};

std::vector<int> Generator::shuffled(int count) {
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (int k = count; k > 1; --k)
    std::swap(order[k - 1], order[below(k)]);
  return order;
}

bool Generator::emit(Op op) {
  if (!machine.run(op))
    return false;
  program.ops.push_back(std::move(op));
  return true;
}

int Generator::argument(ElementType type, const std::vector<int64_t> &shape) {
  Root root{-1, type, shape, true, oneIn(4) ? "resident" : "", true};
  program.roots.push_back(root);
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  std::vector<double> values(count);
  for (double &value : values)
    value = below(9) - 4;
  program.initial.resize(program.roots.size());
  program.initial.back() = values;
  machine.memory.resize(program.roots.size());
  machine.memory.back() = std::move(values);
  return int(program.roots.size()) - 1;
}

View Generator::whole(int root) const {
  const std::vector<int64_t> &shape = program.roots[root].shape;
  std::vector<int64_t> zeros(shape.size(), 0), ones(shape.size(), 1);
  return {root, zeros, shape, ones, true, false};
}

/// A new buffer, written in full: what fresh memory holds is unspecified.
int Generator::fresh(int device, ElementType type,
                     const std::vector<int64_t> &shape) {
  program.roots.push_back({device, type, shape, false, "", true});
  program.initial.resize(program.roots.size());
  int id = int(program.roots.size()) - 1;
  Op alloc{Op::Alloc};
  alloc.roots = {id};
  emit(std::move(alloc));
  Op fill{Op::Launch};
  // Few kernels, each used often: compiling is what takes the time.
  bool isCommon = std::count(rootShapes.begin(), rootShapes.end(), shape) > 0;
  if (device < 0 || !isCommon ||
      std::count(otherTypes.begin(), otherTypes.end(), type) || oneIn(2)) {
    fill.kind = Op::Copy;
    fill.from = {whole(argument(type, shape))};
  }
  fill.to = {whole(id)};
  fill.scalar = below(5);
  fill.streams = {streamOf(device)};
  emit(std::move(fill));
  return id;
}

/// Part of some buffer of the device, or of a new one. One in `variety` has
/// a step, one in `variety` a static offset.
View Generator::pickView(int device, ElementType type,
                         const std::vector<int64_t> &sizes, int variety) {
  std::vector<int> fitting;
  for (int id = 0; id < int(program.roots.size()); ++id) {
    const Root &root = program.roots[id];
    if (!root.isAlive || root.device != device || root.type != type ||
        root.shape.size() != sizes.size())
      continue;
    bool fits = true;
    for (size_t k = 0; k < sizes.size(); ++k)
      fits &= root.shape[k] >= sizes[k];
    if (fits)
      fitting.push_back(id);
  }
  int id;
  if (fitting.empty() || oneIn(6)) {
    std::vector<int64_t> shape = sizes;
    for (const auto &candidate : rootShapes)
      if (candidate.size() == sizes.size() && candidate[0] >= sizes[0] &&
          candidate.back() >= sizes.back() && oneIn(2))
        shape = candidate;
    id = fresh(device, type, shape);
  } else {
    id = pick(fitting);
  }
  const std::vector<int64_t> &shape = program.roots[id].shape;
  View view = whole(id);
  if (shape == sizes && !oneIn(4))
    return view;
  view.isWholeRoot = false;
  view.hasDynamicType = !oneIn(variety);
  view.sizes = sizes;
  for (size_t k = 0; k < sizes.size(); ++k) {
    if (oneIn(variety) && shape[k] >= 2 * sizes[k] - 1)
      view.steps[k] = 2;
    int64_t span = (sizes[k] - 1) * view.steps[k] + 1;
    view.offsets[k] = below(int(shape[k] - span + 1));
  }
  return view;
}

bool Generator::disjoint(const View &a, const View &b) const {
  if (a.root != b.root)
    return true;
  std::set<int64_t> mine;
  auto visit = [&](const View &view, auto &&each) {
    bool is2d = view.sizes.size() == 2;
    for (int64_t i = 0; i < (is2d ? view.sizes[0] : 1); ++i)
      for (int64_t j = 0; j < view.sizes.back(); ++j)
        if (!each((is2d ? (view.offsets[0] + i * view.steps[0]) * 1000 : 0) +
                  view.offsets.back() + j * view.steps.back()))
          return false;
    return true;
  };
  visit(a, [&](int64_t at) { return mine.insert(at), true; });
  return visit(b, [&](int64_t at) { return !mine.count(at); });
}

int Generator::streamOf(int device) {
  std::vector<int> known;
  for (int s = 0; s < int(program.streamDevices.size()); ++s)
    if (program.streamDevices[s] == device)
      known.push_back(s);
  return known.empty() || oneIn(4) ? -1 : pick(known);
}

void Generator::syncAll() {
  for (int device = 0; device < program.numDevices; ++device) {
    Op sync{Op::SyncDevice};
    sync.device = device;
    emit(std::move(sync));
  }
}

void Generator::copy() {
  ElementType type = anyType();
  std::vector<int64_t> sizes = pick(rootShapes);
  for (int64_t &size : sizes)
    size = 1 + below(int(size));
  int to = oneIn(5) ? -1 : anyDevice(), from = oneIn(4) ? -1 : anyDevice();
  Op op{Op::Copy};
  op.to = {pickView(to, type, sizes)};
  op.from = {pickView(from, type, sizes)};
  op.streams = {streamOf(to < 0 ? from : to)};
  op.repeat = oneIn(6) ? 2 : 1;
  if (disjoint(op.to[0], op.from[0]))
    emit(std::move(op));
}

void Generator::shards() {
  ElementType type = anyType();
  Op op{std::vector{Op::Scatter, Op::Gather, Op::Replicate}[below(3)]};
  op.isUneven = op.kind == Op::Scatter && oneIn(2);
  int parts = 1 + below(program.numDevices);
  std::vector<int64_t> sizes = pick(rootShapes), total = sizes;
  op.axis = below(int(sizes.size()));
  if (op.kind != Op::Replicate) {
    sizes[op.axis] = 1 + below(int(sizes[op.axis]) / parts);
    total[op.axis] = 0;
  }
  std::vector<int> devices = shuffled(program.numDevices);
  std::vector<View> views;
  bool hasStreams = true;
  for (int k = 0; k < parts; ++k) {
    std::vector<int64_t> mine = sizes;
    if ((op.isUneven || op.kind == Op::Gather) && oneIn(2))
      mine[op.axis] = 1 + below(int(sizes[op.axis]));
    if (op.kind != Op::Replicate)
      total[op.axis] += mine[op.axis];
    views.push_back(pickView(devices[k], type, mine));
    op.streams.push_back(streamOf(devices[k]));
    hasStreams &= op.streams.back() >= 0;
  }
  if (!hasStreams)
    op.streams.clear();
  View whole = pickView(oneIn(3) ? anyDevice() : -1, type, total);
  for (const View &view : views)
    if (!disjoint(view, whole))
      return;
  (op.kind == Op::Gather ? op.to : op.from) = {whole};
  (op.kind == Op::Gather ? op.from : op.to) = views;
  emit(std::move(op));
}

void Generator::launch() {
  static const std::vector<std::vector<int64_t>> shapes{
      {12}, {24}, {3, 4}, {4, 6}};
  Op op{Op::Launch};
  op.kernel = KernelTemplate(below(7));
  int device = anyDevice();
  ElementType type = pick(kernelTypes);
  const std::vector<int64_t> &sizes = pick(shapes);
  op.scalar = below(10);
  op.repeat = oneIn(5) ? 1 + below(3) : 1;
  op.to = {pickView(device, type, sizes, 16)};
  int operands = op.kernel == KernelTemplate::Fill   ? 0
                 : op.kernel == KernelTemplate::Axpy ? 2
                                                     : 1;
  // A thread may read and write its own element; others would be a data race.
  bool own =
      op.kernel == KernelTemplate::Axpy || op.kernel == KernelTemplate::Guarded;
  for (int k = 0; k < operands; ++k) {
    op.from.push_back(own && oneIn(3) ? op.to[0]
                                      : pickView(device, type, sizes, 16));
    const View &a = op.from.back(), &d = op.to[0];
    bool same =
        a.root == d.root && a.offsets == d.offsets && a.steps == d.steps;
    if (!disjoint(a, d) && !(own && same))
      return;
  }
  op.streams = {streamOf(device)};
  emit(std::move(op));
}

/// Gives both sides of a collective sizes that fit together, from the sizes of
/// some array.
void Generator::fit(Op &op, int ranks, std::vector<int64_t> &send,
                    std::vector<int64_t> &recv) {
  op.axis = op.concatAxis = below(int(recv.size()));
  switch (op.collective) {
  case CollectiveKind::AllGather:
    recv[op.axis] = ranks * (1 + below(2));
    send = recv;
    if (oneIn(2))
      send[op.axis] /= ranks;
    break;
  case CollectiveKind::ReduceScatter:
    send[op.axis] = ranks * (1 + below(2));
    recv = send;
    recv[op.axis] /= ranks;
    break;
  case CollectiveKind::AllToAll:
    op.concatAxis = below(int(recv.size()));
    send[op.axis] = ranks * (1 + below(2));
    recv = send;
    recv[op.axis] /= ranks;
    recv[op.concatAxis] *= ranks;
    break;
  default:
    break;
  }
}

void Generator::collective() {
  if (program.communicators.empty())
    return;
  using enum CollectiveKind;
  Op op{Op::Collective};
  op.communicator = below(int(program.communicators.size()));
  const std::vector<int> &devices = program.communicators[op.communicator];
  int ranks = int(devices.size());
  op.collective = pick(std::vector{AllReduce, AllReduce, AllGather, Broadcast,
                                   ReduceScatter, AllToAll, Permute});
  op.reduction = ReductionKind(below(4));
  op.root = below(ranks);
  op.callOrder = shuffled(ranks);
  if (op.collective == Permute) {
    std::vector<int> sources = shuffled(ranks), targets = shuffled(ranks);
    for (int k = below(ranks + 1); k > 0; --k)
      op.pairs.emplace_back(sources[k - 1], targets[k - 1]);
  }
  ElementType type = anyType();
  std::vector<int64_t> sizes = pick(rootShapes);
  for (int64_t &size : sizes)
    size = 1 + below(int(size));
  std::vector<int64_t> sendSizes = sizes;
  fit(op, ranks, sendSizes, sizes);
  bool isSame = sendSizes == sizes && op.axis == op.concatAxis;
  bool inPlace = op.collective == Broadcast ||
                 ((isSame || op.collective == ReduceScatter) && oneIn(2));
  for (int r = 0; r < ranks; ++r) {
    op.from.push_back(pickView(devices[r], type, sendSizes));
    View to = op.from.back();
    if (!inPlace) {
      to = pickView(devices[r], type, sizes);
      if (!disjoint(to, op.from.back()))
        return;
    } else if (!isSame) { // its own slice of what it sends
      to.isWholeRoot = false;
      to.sizes = sizes;
      to.offsets[op.axis] += r * sizes[op.axis] * to.steps[op.axis];
    }
    op.to.push_back(std::move(to));
    op.streams.push_back(streamOf(devices[r]));
  }
  emit(std::move(op));
}

void Generator::sendRecv() {
  if (program.communicators.empty())
    return;
  Op op{Op::SendRecv};
  op.communicator = below(int(program.communicators.size()));
  const std::vector<int> &devices = program.communicators[op.communicator];
  std::vector<int> ranks = shuffled(int(devices.size()));
  op.callOrder = {ranks[0], ranks[1], below(2)};
  ElementType type = anyType();
  std::vector<int64_t> sizes = pick(rootShapes);
  for (int64_t &size : sizes)
    size = 1 + below(int(size));
  int to = devices[ranks[0]], from = devices[ranks[1]];
  op.to = {pickView(to, type, sizes)};
  op.from = {pickView(from, type, sizes)};
  op.streams = {streamOf(to), streamOf(from)};
  op.repeat = oneIn(6) ? 2 : 1;
  emit(std::move(op));
}

void Generator::order() {
  int numStreams = int(program.streamDevices.size());
  if (numStreams == 0)
    return;
  Op op{oneIn(3) ? Op::SyncStream : Op::StreamWait};
  op.streams = {below(numStreams)};
  for (int k = op.kind == Op::StreamWait ? 1 + below(2) : 0; k > 0; --k)
    op.streams.push_back(below(numStreams));
  emit(std::move(op));
}

/// Frees a buffer, so that the arena may use its bytes again.
void Generator::recycle() {
  std::vector<int> mine;
  for (int id = 0; id < int(program.roots.size()); ++id)
    if (program.roots[id].isAlive && program.roots[id].device >= 0)
      mine.push_back(id);
  if (mine.empty())
    return;
  syncAll();
  Op op{Op::Free};
  op.roots = {pick(mine)};
  program.roots[op.roots[0]].isAlive = false;
  emit(std::move(op));
}

RandomProgram Generator::make() {
  program.numDevices = 1 + below(4);
  for (int count = below(2 * program.numDevices + 1); count > 0; --count)
    program.streamDevices.push_back(anyDevice());
  if (program.numDevices > 1)
    for (int count = 1 + below(2); count > 0; --count) {
      std::vector<int> devices = shuffled(program.numDevices);
      devices.resize(2 + below(program.numDevices - 1));
      program.communicators.push_back(devices);
    }
  for (int count = 5 + below(25); count > 0; --count) {
    int what = below(20);
    what < 6    ? launch()
    : what < 9  ? copy()
    : what < 12 ? shards()
    : what < 15 ? collective()
    : what < 17 ? sendRecv()
    : what < 19 ? order()
                : recycle();
  }
  // Show what every buffer holds.
  for (int id = 0, count = int(program.roots.size()); id < count; ++id) {
    Root root = program.roots[id];
    if (!root.isAlive || root.isArgument)
      continue;
    int out = argument(root.type, root.shape);
    program.roots[out].role = "output";
    Op op{Op::Copy};
    op.to = {whole(out)};
    op.from = {whole(id)};
    op.streams = {streamOf(root.device)};
    emit(std::move(op));
  }
  program.final = machine.memory;
  return std::move(program);
}

} // namespace

RandomProgram makeRandomProgram(uint64_t seed) {
  return Generator(seed).make();
}

} // namespace mgpu::conformance
