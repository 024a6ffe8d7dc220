// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/mpmd/PipelineWorks.h"
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/IR/Remarks.h"
#include "llvm/ADT/SetVector.h"

#include <queue>
#include <set>

namespace mgpu::conversion {

#define GEN_PASS_DEF_SCHEDULEFRAGMENTS
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Brings the operations of a function into the order of a schedule.
class FragmentOrder {
public:
  FragmentOrder(func::FuncOp function, const Pipeline &pipeline,
                PipelineSchedule schedule);
  LogicalResult run();
  /// Whether no operations would wait for each other.
  bool canBeKept() { return inOrder().size() == nodes.size(); }

private:
  /// An operation, by its position in the program.
  struct Node {
    Operation *op;
    llvm::SmallSetVector<size_t, 4> before; ///< what it follows
    std::optional<size_t> behind;           ///< the fragment before, if any
    SmallVector<size_t, 4> after;
    size_t missing = 0;
    int64_t start = 0, takes = 0;
    PipelineHalf half = PipelineHalf::None;
  };
  std::vector<size_t> inOrder();
  LogicalResult report();
  std::string describe(size_t node) const;
  std::optional<size_t> contradicted(size_t node) const;

  func::FuncOp function;
  std::vector<Node> nodes;
  llvm::DenseMap<Operation *, size_t> positions;
  llvm::DenseMap<Operation *, PipelineWork> works;
};

FragmentOrder::FragmentOrder(func::FuncOp function, const Pipeline &pipeline,
                             PipelineSchedule schedule)
    : function(function) {
  for (Operation &op : function.front().without_terminator()) {
    positions[&op] = nodes.size();
    Node &node = nodes.emplace_back();
    node.op = &op;
    for (Value operand : op.getOperands())
      if (Operation *source = operand.getDefiningOp())
        node.before.insert(positions[source]);
  }
  for (auto [position, mesh] : llvm::enumerate(pipeline.meshes)) {
    std::optional<size_t> last;
    for (const auto &[work, half] :
         pipelineOrder(schedule, pipeline.size, int64_t(position))) {
      auto fragments = mesh.works.find(work);
      if (fragments == mesh.works.end())
        continue;
      for (Operation *op : fragments->second) {
        Node &node = nodes[positions[op]];
        node.behind = last;
        node.takes = 1;
        node.half = half;
        works[op] = work;
        last = positions[op];
      }
    }
  }
}

/// Each operation when it could start, were all works of one length and all
/// else done at once: transfers come before the works that begin with them. The
/// result lacks operations that wait for each other.
std::vector<size_t> FragmentOrder::inOrder() {
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t k = 0; k < nodes.size(); ++k) {
    llvm::SmallSetVector<size_t, 4> all = nodes[k].before;
    if (nodes[k].behind)
      all.insert(*nodes[k].behind);
    for (size_t before : all)
      nodes[before].after.push_back(k);
    nodes[k].missing = all.size();
    if (all.empty())
      ready.push(k);
  }
  // By start; of those at one time, what takes none; then by turn. Last is the
  // node.
  std::vector<std::tuple<int64_t, int64_t, size_t, size_t>> starts;
  while (!ready.empty()) {
    const size_t k = ready.top();
    ready.pop();
    starts.push_back({nodes[k].start, nodes[k].takes, starts.size(), k});
    for (size_t after : nodes[k].after) {
      nodes[after].start =
          std::max(nodes[after].start, nodes[k].start + nodes[k].takes);
      if (--nodes[after].missing == 0)
        ready.push(after);
    }
  }
  llvm::sort(starts);
  std::vector<size_t> order;
  for (const auto &[start, takes, turn, node] : starts)
    order.push_back(node);
  return order;
}

std::string FragmentOrder::describe(size_t node) const {
  const PipelineWork work = works.lookup(nodes[node].op);
  static constexpr const char *kinds[] = {"forward", "backward", "weights'"};
  return std::string(kinds[size_t(work.kind)]) + " work of microbatch " +
         std::to_string(work.microbatch) + " on mesh '" +
         cast<mpmd::FragmentOp>(nodes[node].op).getMeshName().str() + "'";
}

/// A fragment that is to follow `node` on its mesh, although `node` needs what
/// it computes.
std::optional<size_t> FragmentOrder::contradicted(size_t node) const {
  llvm::SmallSetVector<size_t, 16> needed;
  needed.insert(node);
  for (size_t k = 0; k < needed.size(); ++k)
    needed.insert(nodes[needed[k]].before.begin(),
                  nodes[needed[k]].before.end());
  needed.remove(node);
  for (size_t each : needed)
    for (auto at = nodes[each].behind; at; at = nodes[*at].behind)
      if (*at == node)
        return each;
  return std::nullopt;
}

LogicalResult FragmentOrder::report() {
  std::optional<size_t> first;
  for (size_t k = 0; k < nodes.size(); ++k) {
    if (nodes[k].missing == 0 || nodes[k].takes == 0)
      continue;
    first = first.value_or(k);
    if (std::optional<size_t> other = contradicted(k)) {
      InFlightDiagnostic error =
          nodes[k].op->emitError("the schedule puts the ")
          << describe(k) << " before the " << describe(*other)
          << ", of which it needs a result";
      error.attachNote(nodes[*other].op->getLoc()) << "this is the latter";
      return error;
    }
  }
  return nodes[*first].op->emitError("the schedule cannot be kept: the ")
         << describe(*first)
         << " and works of other meshes would wait for each other";
}

LogicalResult FragmentOrder::run() {
  const std::vector<size_t> order = inOrder();
  if (order.size() < nodes.size())
    return report();
  Operation *end = function.front().getTerminator();
  Builder b(function.getContext());
  for (size_t k : order) {
    nodes[k].op->moveBefore(end);
    if (nodes[k].half != PipelineHalf::None)
      nodes[k].op->setAttr(halfName,
                           b.getI64IntegerAttr(int64_t(nodes[k].half)));
  }
  ir::setMark(function, ir::Mark::InOrder);
  return success();
}

/// The works of each mesh that the program has, in the order of the schedule.
std::vector<std::vector<PipelineWork>> rowsOf(const Pipeline &pipeline,
                                              PipelineSchedule schedule) {
  std::vector<std::vector<PipelineWork>> rows;
  for (auto [position, mesh] : llvm::enumerate(pipeline.meshes)) {
    std::vector<PipelineWork> &row = rows.emplace_back();
    for (const auto &[work, half] :
         pipelineOrder(schedule, pipeline.size, int64_t(position)))
      if (mesh.works.count(work))
        row.push_back(work);
  }
  return rows;
}

bool has(PipelineWork::Kind kind, const Pipeline &pipeline) {
  for (const Pipeline::Mesh &mesh : pipeline.meshes)
    for (const auto &[work, fragments] : mesh.works)
      if (work.kind == kind)
        return true;
  return false;
}

/// Whether some backward work of the program can be done in two parts.
bool canSplitSome(const Pipeline &pipeline) {
  for (const Pipeline::Mesh &mesh : pipeline.meshes)
    for (const auto &[work, fragments] : mesh.works)
      for (Operation *op : fragments)
        if (work.kind == PipelineWork::Kind::Backward &&
            canBeSplit(cast<mpmd::FragmentOp>(op)))
          return true;
  return false;
}

/// Says in remarks which schedules the pipeline can take. The first of several
/// that give it one and the same order stands for all.
void listSchedules(func::FuncOp function) {
  const Pipeline pipeline = findPipeline(function);
  if (pipeline.meshes.empty())
    return;
  std::set<std::pair<bool, std::vector<std::vector<PipelineWork>>>> seen;
  for (const auto &[name, schedule] : namedSchedules()) {
    // Backward work is not split yet, so these two may only seem to be others.
    const bool splits =
        splitsBackward(schedule) && has(PipelineWork::Kind::Backward, pipeline);
    if (!whyNoOrder(schedule, pipeline.size).empty() ||
        (splits && !canSplitSome(pipeline)) ||
        !seen.insert({splits, rowsOf(pipeline, schedule)}).second ||
        !FragmentOrder(function, pipeline, schedule).canBeKept())
      continue;
    if (auto remark = remark::analysis(
            function.getLoc(),
            remark::RemarkOpts::name("schedule").category("mpmd-schedule")))
      remark << StringRef(name);
  }
}

/// Warns at forward work that comes back to a mesh, where it is not so that
/// each mesh has as many stages.
void warnOfReturns(const Pipeline &pipeline) {
  auto stagesOf = [](const Pipeline::Mesh &mesh) {
    int64_t stages = 0;
    for (const auto &[work, fragments] : mesh.works)
      if (work.kind == PipelineWork::Kind::Forward)
        stages = std::max(stages, work.stage + 1);
    return stages;
  };
  int64_t least = pipeline.size.stages;
  for (const Pipeline::Mesh &mesh : pipeline.meshes)
    least = std::min(least, stagesOf(mesh));
  for (const Pipeline::Mesh &mesh : pipeline.meshes) {
    if (stagesOf(mesh) == least)
      continue;
    auto work = mesh.works.find({PipelineWork::Kind::Forward, 0, least});
    if (work != mesh.works.end())
      work->second.front()->emitWarning()
          << "Detected backward dependency: forward work comes "
             "back to mesh '"
          << mesh.name << "', which then has " << stagesOf(mesh)
          << " stages, and another mesh has " << least
          << "; no named schedule but circular and interleaved takes that";
  }
}

struct ScheduleFragments : impl::ScheduleFragmentsBase<ScheduleFragments> {
  using ScheduleFragmentsBase::ScheduleFragmentsBase;

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>(entry);
    if (!function || function.isExternal() || !mpmd::topologyOf(function))
      return markAllAnalysesPreserved();
    warnOfReturns(findPipeline(function, /*takesWhole=*/true));
    if (name.empty())
      return markAllAnalysesPreserved();
    if (name == "auto")
      listSchedules(function);
    else if (failed(schedule(function)))
      signalPassFailure();
  }

  LogicalResult schedule(func::FuncOp function) {
    std::optional<PipelineSchedule> order =
        parsePipelineSchedule(std::string_view(name));
    if (!order)
      return ir::emitUnsupported(function)
             << "cannot take schedule " << name
             << "; there are gpipe, 1f1b, eager-1f1b, interleaved, circular, "
                "zb-h1, zb-h2 and dualpipev";
    const Pipeline pipeline = findPipeline(function);
    if (pipeline.meshes.empty())
      return ir::emitUnsupported(function)
             << "has no microbatches for schedule " << name
             << ": none of its named computations or fragments has a "
                "call_counter; call a microbatch's function with mpmd.call "
                "{call_counter = K : ui32}, or in an mpmd.for";
    if (std::string why = whyNoOrder(*order, pipeline.size); !why.empty())
      return ir::emitUnsupported(function)
             << "cannot take schedule " << name << ": " << why;
    if (splitsBackward(*order) && has(PipelineWork::Kind::Backward, pipeline) &&
        !has(PipelineWork::Kind::Weights, pipeline))
      return ir::emitUnsupported(function)
             << "cannot take schedule " << name
             << ", which does backward work in two parts: what other meshes "
                "wait for, and the rest. All results of each backward fragment "
                "go to other meshes, or none";
    return FragmentOrder(function, pipeline, *order).run();
  }
};

} // namespace

} // namespace mgpu::conversion
