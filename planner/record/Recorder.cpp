// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/record/Recorder.h"

#include "planner/record/Phases.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <limits>

namespace mgpu::planner {

bool BufferTable::isMade(const std::string &name) const {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot + 1 == name.size() ||
      name[dot + 1] == '0')
    return false;
  uint32_t number = 0;
  const char *end = name.data() + name.size();
  auto [at, error] = std::from_chars(name.data() + dot + 1, end, number);
  if (at != end || error != std::errc())
    return false;
  auto base = numbers.find(name.substr(0, dot));
  return base != numbers.end() && number > 1 && number < base->second;
}

BufferId BufferTable::add(Buffer buffer) {
  auto [at, isNew] = numbers.try_emplace(buffer.name, 2);
  if (!isNew || isMade(buffer.name)) {
    std::string numbered;
    do
      numbered = fmt::format("{}.{}", buffer.name, at->second++);
    while (numbers.contains(numbered));
    buffer.name = std::move(numbered);
  }
  // A size past int64_t is as good as any other that no machine has.
  int64_t bytes = sizeBytes(buffer.elementType);
  for (int64_t size : buffer.shape)
    if (__builtin_mul_overflow(bytes, size, &bytes))
      bytes = std::numeric_limits<int64_t>::max();
  if (std::ranges::count(buffer.shape, 0) > 0)
    bytes = 0;
  buffer.sizeBytes = uint64_t(bytes);
  dag.buffers.push_back(std::move(buffer));
  lives.emplace_back();
  return BufferId{uint32_t(dag.buffers.size() - 1)};
}

Result<void> BufferTable::checkLive(BufferId buffer, Place place) const {
  const std::optional<Place> &freedAt = lives[buffer.value].freedAt;
  if (!freedAt)
    return {};
  Finding finding;
  finding.place = place;
  finding.text = fmt::format("uses buffer '{}' after it was freed",
                             dag.buffer(buffer).name);
  finding.isAboutCall = true;
  finding.notes.push_back({"it is freed here", *freedAt});
  return findings.error(std::move(finding));
}

Result<void> BufferTable::free(BufferId id, std::optional<DeviceId> named,
                               Place place) {
  MGPU_TRY(checkLive(id, place));
  const Buffer &buffer = dag.buffer(id);
  auto refuse = [&](const std::string &why) {
    return findings.callError(
        place, fmt::format("frees buffer '{}'{}", buffer.name, why));
  };
  if (named && *named != buffer.device)
    return refuse(fmt::format(" of device {} on device {}", buffer.device.value,
                              named->value));
  if (buffer.role == BufferRole::Argument ||
      buffer.role == BufferRole::Constant)
    return refuse(", which the program did not allocate");
  Life &life = lives[id.value];
  for (uint32_t c = 1; c < order.numChains(); ++c)
    if (life.lastUses[c] > order.hostClock()[c])
      return refuse(" while work on it may still run; sync its stream first");
  life.freedAt = place;
  return {};
}

Recorder::Recorder(RecorderOptions options)
    : findings(std::move(options.sink)), order(options.numDevices),
      buffers(program.dag, order, findings),
      nodes(program.dag, order, findings, options.racesAreErrors,
            std::move(options.meetSets)),
      matcher(program.dag, order, nodes, findings) {
  program.dag.name = std::move(options.name);
  program.dag.numDevices = options.numDevices;
}

//===----------------------------------------------------------------------===//
// Arguments, buffers, kernels
//===----------------------------------------------------------------------===//

BufferId Recorder::addArgument(ArgumentSpec spec) {
  BufferId buffer = addBuffer(spec.name, spec.device, BufferRole::Argument,
                              spec.elementType, spec.shape);
  program.dag.buffers.back().index = uint32_t(program.arguments.size());
  arguments.push_back({spec.role.has_value(), spec.isRoleOfUser, spec.place});
  program.arguments.push_back({std::move(spec.name),
                               spec.role.value_or(ArgumentRole::Input),
                               spec.elementType,
                               std::move(spec.shape),
                               buffer,
                               {}});
  return buffer;
}

void Recorder::addSpecialised(std::string name, ElementType type,
                              std::string value, Place place) {
  arguments.push_back({true, false, place});
  program.arguments.push_back({std::move(name),
                               ArgumentRole::Specialised,
                               type,
                               {},
                               std::nullopt,
                               std::move(value)});
}

tl::unexpected<Error> Recorder::argumentError(size_t index, ErrorKind kind,
                                              std::string text) {
  Finding finding;
  finding.kind = kind;
  finding.place = arguments[index].place;
  finding.text = std::move(text);
  return findings.error(std::move(finding));
}

// An argument is known by its name or its number, a result by its name. Two of
// them with one name could not be told apart.
Result<void> Recorder::checkNames(size_t numResults) {
  auto refuse = [&](size_t index, const std::string &why) {
    return argumentError(
        index, ErrorKind::Invalid,
        fmt::format("argument {} of @{} is named '{}', {}: give "
                    "it another name (mgpu.name)",
                    index, program.dag.name, program.arguments[index].name,
                    why));
  };
  std::map<std::string, size_t> taken;
  for (size_t k = 0; k < numResults; ++k)
    taken.emplace(k < program.results.size() ? program.results[k].name
                                             : fmt::format("r{}", k),
                  program.arguments.size() + k);
  for (size_t k = 0; k < program.arguments.size(); ++k) {
    const std::string &name = program.arguments[k].name;
    if (name.empty())
      return refuse(k, "which is not a name");
    const bool isNumber =
        name.find_first_not_of("0123456789") == std::string::npos;
    if (isNumber && name != std::to_string(k))
      return refuse(k, "which reads as the number of an argument");
    auto [other, isNew] = taken.emplace(name, k);
    if (!isNew)
      return refuse(k, other->second < k
                           ? fmt::format("as argument {} is", other->second)
                           : "as a result is");
  }
  return {};
}

bool Recorder::isWholeOnHost(const View &view) const {
  const View all = whole(view.buffer);
  return dag().buffer(view.buffer).device.isHost() && view.offset == 0 &&
         view.sizes == all.sizes && view.strides == all.strides;
}

Result<void> Recorder::addExpectation(Expectation expectation,
                                      const View &found, const View &expected) {
  if (!isWholeOnHost(found) || !isWholeOnHost(expected) ||
      found.sizes != expected.sizes ||
      dag().buffer(found.buffer).elementType !=
          dag().buffer(expected.buffer).elementType)
    return fail(ErrorKind::Internal,
                "an expectation is not about two whole host buffers");
  expectation.found = found.buffer;
  expectation.expected = expected.buffer;
  for (BufferId id : {found.buffer, expected.buffer})
    if (Buffer &buffer = program.dag.buffers[id.value];
        buffer.role == BufferRole::HostLocal)
      buffer.role = BufferRole::Result;
  program.expectations.push_back(std::move(expectation));
  return {};
}

Result<void> Recorder::addOutput(HostOutput output, const View *view,
                                 CallSite site) {
  output.place = findings.textOf(site.place);
  if (inLoop)
    return findings.callError(
        site.place, "is in a loop that stays rolled, which prints nothing",
        ErrorKind::Unsupported);
  if (view) {
    output.offset = view->offset;
    output.strides = view->strides;
    output.buffer =
        addBuffer("printed", DeviceId::host(), BufferRole::Result,
                  dag().buffer(view->buffer).elementType, view->sizes);
    if (std::ranges::find(view->sizes, 0) == view->sizes.end())
      MGPU_TRY(copy({whole(*output.buffer), *view, "output"}, site));
  }
  program.outputs.push_back(std::move(output));
  return {};
}

Result<void> Recorder::addResult(const std::optional<View> &view,
                                 std::string name) {
  const size_t index = program.results.size();
  if (!view || !isWholeOnHost(*view))
    return fail(ErrorKind::Unsupported,
                fmt::format("result {} of @{} is not a whole host buffer; "
                            "copy it into one and return that",
                            index, program.dag.name));
  Buffer &buffer = program.dag.buffers[view->buffer.value];
  if (buffer.role == BufferRole::HostLocal) {
    buffer.role = BufferRole::Result;
    buffer.index = uint32_t(index);
  }
  program.results.push_back({name.empty() ? fmt::format("r{}", index) : name,
                             ArgumentRole::Output,
                             buffer.elementType,
                             buffer.shape,
                             view->buffer,
                             {}});
  return {};
}

BufferId Recorder::addBuffer(std::string name, DeviceId device, BufferRole role,
                             ElementType type, std::vector<int64_t> shape,
                             std::vector<std::byte> contents) {
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.device = device;
  buffer.role = role;
  buffer.elementType = type;
  buffer.shape = std::move(shape);
  buffer.contents = std::move(contents);
  return buffers.add(std::move(buffer));
}

void Recorder::checkOwner(BufferId id, DeviceId named, const std::string &what,
                          Place place) {
  const Buffer &buffer = program.dag.buffer(id);
  if (named == buffer.device)
    return;
  auto text = [](DeviceId device) {
    return device.isHost() ? "the host"
                           : fmt::format("device {}", device.value);
  };
  Finding finding;
  finding.place = place;
  finding.text =
      fmt::format("{} buffer '{}' lives on {}, not on {} as said "
                  "here; where it lives wins",
                  what, buffer.name, text(buffer.device), text(named));
  findings.warn(std::move(finding));
}

KernelId Recorder::addKernel(KernelSpec kernel) {
  program.dag.kernels.push_back(std::move(kernel));
  return {uint32_t(program.dag.kernels.size() - 1)};
}

void Recorder::setFacts(KernelId kernel, KernelFacts facts) {
  program.dag.kernels[kernel.value].facts = std::move(facts);
}

//===----------------------------------------------------------------------===//
// Streams and loops
//===----------------------------------------------------------------------===//

Result<uint32_t> Recorder::chainOf(std::optional<SourceStream> stream,
                                   DeviceId device, Place place) {
  if (!stream)
    return order.defaultChain(device);
  auto destroyed = destroyedStreams.find(stream->chain);
  if (destroyed == destroyedStreams.end())
    return stream->chain;
  Finding finding;
  finding.place = place;
  finding.text = "uses a destroyed stream";
  finding.isAboutCall = true;
  finding.notes.push_back({"it is destroyed here", destroyed->second});
  return findings.error(std::move(finding));
}

Result<void> Recorder::hostWaits(uint32_t chain, Place place) {
  MGPU_TRY(matcher.checkBlocking(order.reachAt(chain), place));
  order.hostWaitsFor(chain);
  return {};
}

Result<void> Recorder::destroyStream(SourceStream stream, Place place) {
  MGPU_TRY_ASSIGN(uint32_t chain, chainOf(stream, DeviceId::host(), place));
  if (!order.isDrained(chain))
    return findings.callError(place,
                              "destroys a stream whose work may still run; "
                              "mgpu.sync_stream it first");
  destroyedStreams.emplace(chain, place);
  return {};
}

Result<void> Recorder::streamWait(SourceStream waiting, SourceStream awaited,
                                  Place place) {
  MGPU_TRY_ASSIGN(uint32_t chain, chainOf(waiting, DeviceId::host(), place));
  MGPU_TRY_ASSIGN(uint32_t other, chainOf(awaited, DeviceId::host(), place));
  order.waitFor(chain, other);
  return {};
}

Result<void> Recorder::syncStream(SourceStream stream, Place place) {
  MGPU_TRY_ASSIGN(uint32_t chain, chainOf(stream, DeviceId::host(), place));
  return hostWaits(chain, place);
}

Result<void> Recorder::syncDevice(DeviceId device, Place place) {
  for (uint32_t chain = 1; chain < order.numChains(); ++chain)
    if (order.deviceOf(chain) == device)
      MGPU_TRY(hostWaits(chain, place));
  return {};
}

Result<void> Recorder::loop(const LoopSpec &loop,
                            const std::function<Result<void>(BufferId)> &body) {
  if (rolled)
    return findings.callError(loop.place, "runs more than once");
  if (loop.trips < 2)
    return findings.callError(
        loop.place, "has fewer than 2 trips; record its body without a loop");
  rolled = RolledTrips{findings.textOf(loop.place), loop.trips, {}, {}, {}};
  inLoop = true;
  for (int trip = 0; trip <= 2; ++trip) {
    if (!matcher.isIdle())
      return findings.callError(loop.place,
                                "leaves collectives open from trip to trip");
    rolled->nodes[trip] = uint32_t(dag().nodes.size());
    rolled->buffers[trip] = uint32_t(dag().buffers.size());
    if (trip < 2)
      MGPU_TRY(body(
          addInduction(loop.name, loop.elementType, loop.first, loop.step)));
  }
  inLoop = false;
  return {};
}

BufferId Recorder::addInduction(std::string name, ElementType type,
                                int64_t first, int64_t step) {
  BufferId buffer = addBuffer(std::move(name), DeviceId::host(),
                              BufferRole::HostLocal, type, {});
  program.dag.loop.inductions.push_back({buffer, first, step});
  return buffer;
}

const Induction *Recorder::findInduction(BufferId buffer) const {
  for (const Induction &known : program.dag.loop.inductions)
    if (known.buffer == buffer)
      return &known;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// The whole program
//===----------------------------------------------------------------------===//

Result<void> Recorder::checkRoles() {
  const std::vector<bool> isWritten = writtenBuffers(program.dag);
  for (size_t k = 0; k < program.arguments.size(); ++k) {
    const ProgramArgument &argument = program.arguments[k];
    if (arguments[k].isRoleGiven && argument.role == ArgumentRole::Input &&
        isWritten[argument.buffer->value])
      return argumentError(
          k, arguments[k].isRoleOfUser ? ErrorKind::Usage : ErrorKind::Invalid,
          fmt::format("argument '{}' of @{} cannot have role 'input', as the "
                      "program writes it: give it role 'output', or none",
                      argument.name, program.dag.name));
  }
  return {};
}

Result<void> Recorder::dropSecond() {
  MGPU_TRY_ASSIGN(std::vector<BufferId> newIds,
                  dropSecondTrip(program.dag, *rolled));
  for (auto *list : {&program.arguments, &program.results})
    for (ProgramArgument &bound : *list)
      if (bound.buffer)
        bound.buffer = newIds[bound.buffer->value];
  for (Expectation &each : program.expectations)
    for (BufferId *id : {&each.found, &each.expected})
      *id = newIds[id->value];
  for (HostOutput &each : program.outputs)
    if (each.buffer)
      each.buffer = newIds[each.buffer->value];
  return {};
}

Result<Program> Recorder::finish() {
  Result<void> sound = matcher.finish();
  keepFirst(sound, nodes.finish());
  MGPU_TRY(sound);
  MGPU_TRY(checkNames(program.results.size()));
  if (rolled)
    MGPU_TRY(dropSecond());
  MGPU_TRY(checkRoles());
  std::vector<bool> isGiven;
  for (const Argument &argument : arguments)
    isGiven.push_back(argument.isRoleGiven);
  inferRoles(program, isGiven);
  assignPhases(program);
  for (const Buffer &buffer : program.dag.buffers)
    if (buffer.sizeBytes >= uint64_t(1) << 62)
      return fail(ErrorKind::Invalid,
                  fmt::format("buffer '{}' of 2^62 bytes or more cannot be "
                              "addressed; make its shape smaller",
                              buffer.name));
  program.dag.normalize();
  if (auto ok = program.dag.check(); !ok)
    return fail(ErrorKind::Internal,
                "the recorded calls make an illegal DAG: " +
                    ok.error().message);
  return std::move(program);
}

} // namespace mgpu::planner
