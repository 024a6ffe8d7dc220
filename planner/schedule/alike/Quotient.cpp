// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/schedule/alike/Quotient.h"

#include "support/Random.h"

#include <algorithm>
#include <bit>
#include <map>

namespace mgpu::planner {

static size_t indexOf(DeviceId device) { return size_t(device.value + 1); }

namespace {

constexpr uint32_t none = UINT32_MAX;

class QuotientMaker {
public:
  QuotientMaker(const Dag &whole, std::span<const double> durations)
      : whole(whole), durations(durations) {}

  std::optional<Quotient> run() {
    findClasses();
    if (out.faces.size() == out.classOf.size() || !findNodes() || !findEdges())
      return std::nullopt;
    takeBuffers();
    takeNodes();
    if (!out.dag.check())
      return std::nullopt;
    return std::move(out);
  }

private:
  /// A hash of what a device does. Two that are equal by chance make a quotient
  /// that findEdges() or verify() refuses.
  struct Doing {
    uint64_t hash = 0;
    uint32_t buffers = 0;
    void see(uint64_t value) {
      hash = (hash ^ value) * 0x9e3779b97f4a7c15;
      hash ^= hash >> 29;
    }
  };

  void findClasses() {
    std::vector<Doing> doings(size_t(whole.numDevices) + 1);
    doings[0].see(1); // the host is like no device
    numbers.assign(whole.buffers.size(), none);
    for (uint32_t i = 0; i < whole.nodes.size(); ++i) {
      const DagNode &node = whole.nodes[i];
      for (DeviceId device : streamDevices(node)) {
        Doing &doing = doings[indexOf(device)];
        doing.see(uint64_t(workClass(node)) * allPhases.size() +
                  uint64_t(node.phase));
        doing.see(std::bit_cast<uint64_t>(durations[i]));
        doing.see(std::bit_cast<uint64_t>(smShare(node)));
        doing.see(node.devices.size());
      }
      for (const BufferUse &use : node.uses) {
        const Buffer &buffer = whole.buffer(use.buffer);
        Doing &doing = doings[indexOf(buffer.device)];
        uint32_t &number = numbers[use.buffer.value];
        if (number == none)
          number = doing.buffers++;
        if (buffer.device.isHost())
          continue;
        doing.see(number);
        doing.see(buffer.sizeBytes);
        doing.see(uint64_t(buffer.role) * 4 + use.reads * 2 + use.writes);
      }
    }
    for (uint32_t b = 0; b < whole.buffers.size(); ++b)
      if (numbers[b] == none) {
        Doing &doing = doings[indexOf(whole.buffers[b].device)];
        numbers[b] = doing.buffers++;
        doing.see(whole.buffers[b].sizeBytes);
        doing.see(uint64_t(whole.buffers[b].role));
      }
    classify(doings);
    for (size_t before = 0; before != out.faces.size();) {
      before = out.faces.size();
      seeOthers(doings);
      classify(doings);
    }
  }

  /// A device that works with others is known by their classes as well.
  void seeOthers(std::vector<Doing> &doings) const {
    for (const DagNode &node : whole.nodes) {
      if (node.devices.size() < 2)
        continue;
      uint64_t sum = 0;
      for (DeviceId device : node.devices)
        sum += Random(out.classOf[indexOf(device)]).next();
      for (DeviceId device : node.devices)
        doings[indexOf(device)].see(sum);
    }
  }

  void classify(const std::vector<Doing> &doings) {
    out.classOf.clear(), out.faces.clear();
    std::map<uint64_t, uint32_t> classes;
    for (size_t device = 0; device < doings.size(); ++device) {
      const auto [at, isNew] =
          classes.try_emplace(doings[device].hash, uint32_t(classes.size()));
      out.classOf.push_back(at->second);
      if (isNew)
        out.faces.push_back(DeviceId{int32_t(device) - 1});
    }
  }

  /// Numbers the nodes of the quotient: what stands at one place in the work of
  /// the devices of a class, and at the places that a node of several classes
  /// joins. False where that would join two nodes of one device.
  bool findNodes() {
    using Place = Quotient::Place;
    std::vector<std::vector<uint32_t>> nodeAt(out.faces.size());
    out.work.resize(out.classOf.size());
    std::vector<Place> places;
    std::vector<Rows<uint32_t>::Entry> entries;
    for (uint32_t i = 0; i < whole.nodes.size(); ++i) {
      places.clear();
      for (DeviceId device : streamDevices(whole.nodes[i])) {
        std::vector<uint32_t> &work = out.work[indexOf(device)];
        places.push_back({out.classOf[indexOf(device)], uint32_t(work.size())});
        work.push_back(i);
      }
      std::sort(places.begin(), places.end());
      places.erase(std::unique(places.begin(), places.end()), places.end());
      const auto [ofClass, at] = places.front();
      const uint32_t node = at < nodeAt[ofClass].size()
                                ? nodeAt[ofClass][at]
                                : uint32_t(out.places.size());
      if (node == out.places.size()) {
        for (const Place &place : places)
          if (place.at != nodeAt[place.ofClass].size())
            return false;
          else
            nodeAt[place.ofClass].push_back(node);
        out.places.push_back(places);
      } else if (places != out.places[node]) {
        return false;
      }
      out.nodeOf.push_back(node);
      entries.emplace_back(node, i);
    }
    out.nodes = Rows<uint32_t>(uint32_t(out.places.size()), entries);
    return true;
  }

  bool areAlike(uint32_t a, uint32_t b) const {
    return durations[a] == durations[b] &&
           whole.nodes[a].phase == whole.nodes[b].phase &&
           workClass(whole.nodes[a]) == workClass(whole.nodes[b]) &&
           smShare(whole.nodes[a]) == smShare(whole.nodes[b]);
  }

  /// Whether the nodes that one stands for take the same time, and follow and
  /// precede the same nodes.
  bool findEdges() {
    const Predecessors predecessors(whole);
    const Successors successors(whole);
    std::vector<uint32_t> before, after, ofFirst[2];
    auto settle = [](std::vector<uint32_t> &nodes) {
      std::sort(nodes.begin(), nodes.end());
      nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    };
    for (uint32_t k = 0; k < out.places.size(); ++k)
      for (uint32_t i : out.nodes[k]) {
        const bool isFirst = i == out.nodes[k].front();
        before.clear(), after.clear();
        for (const DepEdge &edge : predecessors.of(NodeId{i})) {
          before.push_back(out.nodeOf[edge.from.value]);
          if (isFirst)
            out.dag.edges.push_back({{before.back()}, {k}, edge.kind});
        }
        for (NodeId next : successors.of(NodeId{i}))
          after.push_back(out.nodeOf[next.value]);
        settle(before), settle(after);
        if (isFirst)
          ofFirst[0] = before, ofFirst[1] = after;
        else if (before != ofFirst[0] || after != ofFirst[1] ||
                 !areAlike(i, out.nodes[k].front()))
          return false;
      }
    out.dag.normalize();
    return true;
  }

  /// Takes those of the first devices, and of the host without their bytes.
  void takeBuffers() {
    std::vector<std::vector<uint32_t>> known(out.faces.size());
    for (uint32_t b = 0; b < whole.buffers.size(); ++b) {
      const Buffer &buffer = whole.buffers[b];
      const uint32_t ofClass = out.classOf[indexOf(buffer.device)];
      if (out.faces[ofClass] != buffer.device)
        continue;
      if (known[ofClass].size() <= numbers[b])
        known[ofClass].resize(numbers[b] + 1);
      known[ofClass][numbers[b]] = uint32_t(out.dag.buffers.size());
      Buffer &made = out.dag.buffers.emplace_back();
      made.name = buffer.name;
      made.device = DeviceId{int32_t(ofClass) - 1};
      made.role = buffer.device.isHost() ? BufferRole::HostLocal : buffer.role;
      made.sizeBytes = buffer.sizeBytes;
    }
    for (uint32_t b = 0; b < whole.buffers.size(); ++b)
      out.bufferOf.push_back(
          known[out.classOf[indexOf(whole.buffers[b].device)]][numbers[b]]);
  }
  bool isTaken(BufferId buffer) const {
    const DeviceId device = whole.buffer(buffer).device;
    return out.faces[out.classOf[indexOf(device)]] == device;
  }

  void takeNodes() {
    out.dag.name = whole.name;
    out.dag.numDevices = uint32_t(out.faces.size()) - 1;
    out.dag.residentBytes = whole.residentBytes;
    out.dag.loop.trips = whole.loop.trips;
    for (uint32_t k = 0; k < out.places.size(); ++k) {
      const auto [ofClass, at] = out.places[k].front();
      const uint32_t face = out.work[indexOf(out.faces[ofClass])][at];
      const DagNode &node = whole.nodes[face];
      DagNode made;
      made.name = node.name;
      made.location = node.location;
      made.phase = node.phase;
      made.durationUs = durations[face];
      for (const Quotient::Place &place : out.places[k])
        if (place.ofClass > 0)
          made.devices.push_back(DeviceId{int32_t(place.ofClass) - 1});
      takeWork(made, node);
      for (uint32_t i : out.nodes[k])
        for (const BufferUse &use : whole.nodes[i].uses)
          if (isTaken(use.buffer) &&
              (i == face || !whole.buffer(use.buffer).device.isHost())) {
            made.uses.push_back(use);
            made.uses.back().buffer = BufferId{out.bufferOf[use.buffer.value]};
          }
      out.dag.nodes.push_back(std::move(made));
    }
  }

  /// Leaves nothing of the work but its class and, of a copy, its ends.
  void takeWork(DagNode &made, const DagNode &node) const {
    made.work = OpaqueCall{};
    if (auto *copy = std::get_if<CopyCall>(&node.work)) {
      made.work = CopyCall{{out.bufferOf[copy->source.value]},
                           {out.bufferOf[copy->destination.value]},
                           copy->sourceBox,
                           copy->destinationBox};
    } else if (auto *opaque = std::get_if<OpaqueCall>(&node.work)) {
      made.work = *opaque;
    } else {
      std::get<OpaqueCall>(made.work).isCollective =
          workClass(node) == WorkClass::Collective;
    }
  }

  const Dag &whole;
  std::span<const double> durations;
  Quotient out;
  std::vector<uint32_t> numbers; ///< by buffer, among those of its device
};

} // namespace

std::optional<Quotient> quotientOf(const Dag &whole,
                                   std::span<const double> durations) {
  if (whole.spmd || whole.nodes.size() <= maxSearchedNodes)
    return std::nullopt;
  return QuotientMaker(whole, durations).run();
}

std::vector<double> Quotient::durations() const {
  std::vector<double> durations;
  for (const DagNode &node : dag.nodes)
    durations.push_back(*node.durationUs);
  return durations;
}

std::vector<NodeId> Quotient::onDevicesOf(NodeId node,
                                          const DagNode &beside) const {
  std::vector<NodeId> found;
  for (DeviceId device : streamDevices(beside))
    for (const Place &place : places[node.value])
      if (place.ofClass == classOf[indexOf(device)])
        found.push_back(NodeId{work[indexOf(device)][place.at]});
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

/// Gives the steps of a lifted plan the waits of their quotient's that the DAG
/// does not ask for. Whether there are any.
static bool liftWaits(Plan &plan, const Plan &from, const Quotient &quotient,
                      const Dag &whole) {
  std::vector<const PlanStep *> stepOf(quotient.dag.nodes.size());
  for (const PlanStep &step : from.steps)
    stepOf[step.node.value] = &step;
  bool isChanged = false;
  for (PlanStep &step : plan.steps) {
    const size_t before = step.waits.size();
    for (NodeId wait : stepOf[quotient.nodeOf[step.node.value]]->waits)
      for (NodeId each : quotient.onDevicesOf(wait, whole.node(step.node)))
        step.waits.push_back(each);
    std::sort(step.waits.begin(), step.waits.end());
    step.waits.erase(std::unique(step.waits.begin(), step.waits.end()),
                     step.waits.end());
    isChanged |= step.waits.size() != before;
  }
  return isChanged;
}

/// Puts buffers where those of their classes are.
static void liftArena(Plan &plan, const Plan &from, const Quotient &quotient,
                      const Dag &whole) {
  std::vector<uint64_t> offsets(quotient.dag.buffers.size());
  for (const Placement &placement : from.placements)
    offsets[placement.buffer.value] = placement.offset;
  for (uint32_t b = 0; b < whole.buffers.size(); ++b)
    if (isInArena(whole.buffers[b]))
      plan.placements.push_back({BufferId{b}, offsets[quotient.bufferOf[b]]});
  for (size_t device = 1; device < quotient.classOf.size(); ++device)
    plan.arenaBytes.push_back(from.arenaBytes[quotient.classOf[device] - 1]);
}

Result<void> lift(Plan &plan, const Quotient &quotient, const Dag &whole) {
  std::vector<double> durations(whole.nodes.size());
  const std::vector<double> ofClasses = quotient.durations();
  for (size_t i = 0; i < durations.size(); ++i)
    durations[i] = ofClasses[quotient.nodeOf[i]];
  std::vector<OrderedStep> order;
  order.reserve(whole.nodes.size());
  for (const PlanStep &step : plan.steps)
    for (uint32_t i : quotient.nodes[step.node.value]) {
      OrderedStep &made = order.emplace_back();
      made.node = NodeId{i};
      for (DeviceId device : streamDevices(whole.nodes[i]))
        for (PlanStream stream : step.streams)
          if (indexOf(stream.device) == quotient.classOf[indexOf(device)])
            made.streams.push_back({device, stream.stream});
    }
  ScheduleOptions options{plan.scheduler, 0, plan.streamsPerDevice};
  options.placesBuffers = false;
  MGPU_TRY_ASSIGN(Plan lifted,
                  schedule(whole, PlanDurations(durations, plan.model), options,
                           std::move(order)));
  liftArena(lifted, plan, quotient, whole);
  if (liftWaits(lifted, plan, quotient, whole))
    predictTimes(lifted, whole);
  for (auto [mine, theirs] : {std::pair(lifted.makespanUs, plan.makespanUs),
                              std::pair(lifted.loadUs, plan.loadUs),
                              std::pair(lifted.fetchUs, plan.fetchUs)})
    if (mine > theirs * (1 + 1e-9))
      return fail(ErrorKind::Internal, "a lifted plan takes longer");
  plan = std::move(lifted);
  return {};
}

namespace {

/// One phase of a quotient's certificates for the same phase of the whole.
class CertificateLift {
public:
  CertificateLift(const Quotient &quotient, const Dag &whole,
                  const PhaseProblem &from, const PhaseProblem &to)
      : quotient(quotient), whole(whole), to(to) {
    for (uint32_t k = 0; k < to.nodes.size(); ++k)
      for (size_t u = 0; u < to.problem.uses[k].size(); ++u) {
        const DagNode &node = whole.node(to.nodes[k]);
        resources.try_emplace(
            {indexOf(streamDevices(node)[u]), workClass(node)},
            to.problem.uses[k][u].resource);
      }
    classes.resize(from.problem.numResources());
    for (uint32_t k = 0; k < from.nodes.size(); ++k)
      for (size_t u = 0; u < from.problem.uses[k].size(); ++u) {
        const DagNode &node = quotient.dag.node(from.nodes[k]);
        classes[from.problem.uses[k][u].resource] = {
            uint32_t(indexOf(streamDevices(node)[u])), workClass(node)};
      }
    numbers.resize(quotient.dag.nodes.size());
    for (uint32_t k = 0; k < from.nodes.size(); ++k)
      numbers[from.nodes[k].value] = k;
  }

  Certificate run(const Certificate &of) {
    Certificate out;
    out.phase = of.phase;
    out.boundUs = of.boundUs;
    out.heads = claims(of.heads, Direction::Forward);
    out.tails = claims(of.tails, Direction::Backward);
    if (auto *node = std::get_if<NodeArgument>(&of.argument)) {
      for (uint32_t k = 0; k < to.nodes.size(); ++k)
        if (numberOf(k) == node->node)
          out.argument = NodeArgument{k};
    } else if (auto *set = std::get_if<SetArgument>(&of.argument)) {
      out.argument =
          SetArgument{resourceOf(set->resource, none), set->head, set->tail};
    } else if (auto *memory = std::get_if<MemoryArgument>(&of.argument)) {
      MemoryArgument made = *memory;
      made.device = uint32_t(quotient.faces[made.device + 1].value);
      out.argument = made;
    }
    return out;
  }

private:
  uint32_t numberOf(uint32_t k) const {
    return numbers[quotient.nodeOf[to.nodes[k].value]];
  }

  /// The resource of the whole for one of the quotient: that of a device of
  /// node `k`, where it has one of the class.
  uint32_t resourceOf(uint32_t resource, uint32_t k) const {
    const auto [ofClass, work] = classes[resource];
    size_t device = indexOf(quotient.faces[ofClass]);
    if (k != none)
      for (DeviceId each : streamDevices(whole.node(to.nodes[k])))
        if (quotient.classOf[indexOf(each)] == ofClass) {
          device = indexOf(each);
          break;
        }
    return resources.at({device, work});
  }

  std::vector<Claim> claims(const std::vector<Claim> &of,
                            Direction direction) const {
    std::vector<Claim> out;
    out.reserve(to.nodes.size());
    for (uint32_t k = 0; k < to.nodes.size(); ++k) {
      Claim claim = of[numberOf(k)];
      if (auto *path = std::get_if<PathReason>(&claim.reason)) {
        for (uint32_t other : to.problem.needs(k, direction))
          if (numberOf(other) == path->node) {
            claim.reason = PathReason{other};
            break;
          }
      } else if (auto *work = std::get_if<WorkReason>(&claim.reason)) {
        work->resource = resourceOf(work->resource, k);
      }
      out.push_back(claim);
    }
    return out;
  }

  const Quotient &quotient;
  const Dag &whole;
  const PhaseProblem &to;
  std::map<std::pair<size_t, WorkClass>, uint32_t> resources; ///< of `to`
  std::vector<std::pair<uint32_t, WorkClass>> classes; ///< by resource of from
  std::vector<uint32_t> numbers; ///< by node of the quotient: in `from`
};

} // namespace

Result<PlanBound> liftBound(const Quotient &quotient, const Dag &whole,
                            std::span<const PhaseProblem> phases) {
  MGPU_TRY_ASSIGN(
      const std::vector<PhaseProblem> ofClasses,
      phaseProblems(quotient.dag, quotient.durations(),
                    phases.empty() ? UINT64_MAX
                                   : phases[0].problem.devices[0].memoryBytes));
  MGPU_TRY_ASSIGN(PlanBound bound, boundOf(ofClasses));
  if (ofClasses.size() != phases.size())
    return fail(ErrorKind::Internal, "a quotient has other phases");
  bound.words.clear();
  for (size_t k = 0; k < phases.size(); ++k) {
    Certificate &certificate = bound.certificates[k];
    certificate = CertificateLift(quotient, whole, ofClasses[k], phases[k])
                      .run(certificate);
    MGPU_TRY(check(certificate, phases[k].problem));
    if (phases[k].times > 0)
      bound.words.push_back(explainBound(certificate, phases[k].problem));
  }
  return bound;
}

Result<PlanBound> boundOf(const Dag &dag, std::span<const double> durations,
                          std::span<const PhaseProblem> phases) {
  if (const auto quotient = quotientOf(dag, durations))
    if (Result<PlanBound> bound = liftBound(*quotient, dag, phases))
      return bound;
  return boundOf(phases);
}

} // namespace mgpu::planner
