// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/record/BuilderRecording.h"

#include <set>
#include <tuple>

namespace mgpu::planner {

BuilderRecording::BuilderRecording(const ProgramBuilder &builder)
    : builder(builder),
      recorder({.name = builder.name, .numDevices = builder.numDevices}) {}

bool ProgramBuilder::Where::operator<(const Where &other) const {
  auto key = [](const Where &where) {
    const PipelinePart part = where.part.value_or(PipelinePart{});
    return std::tuple(std::string_view(where.text), where.part.has_value(),
                      part.kind, part.microbatch, part.stage);
  };
  return key(*this) < key(other);
}

Place BuilderRecording::placeOf(const ProgramBuilder::Where &where) {
  if (where.text.empty() && !where.part)
    return {};
  auto [at, isNew] = places.try_emplace(where);
  if (isNew)
    at->second = recorder.place(where.text, where.part);
  return at->second;
}

View BuilderRecording::viewOf(const BuiltView &view) const {
  return {ids[view.buffer.value], view.offset, view.sizes, view.strides};
}

KernelId BuilderRecording::kernelOf(BuiltKernel kernel) {
  kernelIds.resize(builder.kernels.size());
  std::optional<KernelId> &id = kernelIds[kernel.value];
  if (!id)
    id = recorder.addKernel(builder.kernels[kernel.value]);
  return *id;
}

Result<void> BuilderRecording::run(const ProgramBuilder::Call &call) {
  return std::visit(
      [&](const auto &what) { return make(what, placeOf(call.place)); },
      call.what);
}

Result<void> BuilderRecording::make(const BuiltBuffer &buffer, Place place) {
  const BuiltBufferSpec &spec = builder.buffers[buffer.value].spec;
  ids.resize(builder.buffers.size());
  BufferId &id = ids[buffer.value];
  auto add = [&](BufferRole role) {
    id = recorder.addBuffer(spec.name, spec.device, role, spec.elementType,
                            spec.shape, spec.contents);
  };
  switch (spec.kind) {
  case BuiltKind::Argument:
  case BuiltKind::External:
    id = recorder.addArgument({.name = spec.name,
                               .role = spec.role,
                               .isRoleOfUser = spec.role.has_value(),
                               .elementType = spec.elementType,
                               .shape = spec.shape,
                               .place = place,
                               .device = spec.device});
    break;
  case BuiltKind::Result:
    add(BufferRole::HostLocal);
    results.emplace_back(id, spec.name);
    break;
  case BuiltKind::Temporary:
    add(spec.device.isHost() ? BufferRole::HostLocal : BufferRole::Temporary);
    break;
  case BuiltKind::Resident:
    add(BufferRole::Resident);
    break;
  case BuiltKind::Constant:
    add(BufferRole::Constant);
    break;
  }
  return {};
}

/// A number on the host is read from the device's copy of it.
Result<void> BuilderRecording::addUse(const BuiltArgument &argument,
                                      LaunchSpec &launch, Place place) {
  if (auto *scalar = std::get_if<BuiltScalar>(&argument.value)) {
    launch.arguments.push_back({scalar->bits});
    return {};
  }
  View view = viewOf(std::get<BuiltView>(argument.value));
  const Buffer &buffer = recorder.dag().buffer(view.buffer);
  const int64_t width = sizeBytes(buffer.elementType);
  if (buffer.device.isHost() && buffer.shape.empty() && !argument.writes) {
    MGPU_TRY_ASSIGN(view.buffer,
                    recorder.parameterOn(launch.device, view.buffer, place));
  }
  if (argument.isPassed)
    launch.arguments.push_back({view.buffer, view.offset * width});
  if (argument.reads || argument.writes)
    launch.uses.push_back({.use = {view.buffer, boxOf(view, uint32_t(width)),
                                   argument.reads, argument.writes},
                           .mostBytes = argument.mostBytes});
  return {};
}

Result<void> BuilderRecording::make(const BuiltLaunch &built, Place place) {
  LaunchSpec launch{.device = built.device,
                    .kernel = kernelOf(built.kernel),
                    .grid = built.grid,
                    .flops = built.flops,
                    .name = built.name,
                    .durationUs = built.durationUs};
  for (const BuiltArgument &argument : built.arguments)
    MGPU_TRY(addUse(argument, launch, place));
  return recorder.launch(std::move(launch), {place});
}

Result<void> BuilderRecording::make(const ProgramBuilder::Copy &copy,
                                    Place place) {
  return recorder.copy(
      {viewOf(copy.destination), viewOf(copy.source), copy.name}, {place});
}

Result<void> BuilderRecording::make(const ProgramBuilder::Fill &fill,
                                    Place place) {
  return recorder.fill(viewOf(fill.view), fill.element, {place});
}

Result<void> BuilderRecording::member(const BuiltCollective &call,
                                      uint32_t communicator, size_t rank,
                                      Place place) {
  const View send = viewOf(call.send[rank]),
             receive = viewOf(call.receive[rank]);
  const CallSite site{place};
  switch (call.kind) {
  case CollectiveKind::AllReduce:
    return recorder.allReduce(communicator, call.reduction, send, receive,
                              site);
  case CollectiveKind::AllGather:
    return recorder.allGather(communicator, call.splitAxis, send, receive,
                              site);
  case CollectiveKind::ReduceScatter:
    return recorder.reduceScatter(communicator, call.reduction, call.splitAxis,
                                  send, receive, site);
  case CollectiveKind::AllToAll:
    return recorder.allToAll(communicator, call.splitAxis, call.concatAxis,
                             send, receive, site);
  case CollectiveKind::Permute:
    return recorder.permute(communicator, call.pairs, send, receive, site);
  case CollectiveKind::Broadcast:
    return recorder.broadcast(communicator, call.root, receive, site);
  case CollectiveKind::SendRecv: {
    // Ranks are devices there.
    auto other = [&](const BuiltView &view) {
      return builder.buffers[view.buffer.value].spec.device.value;
    };
    return rank == 0
               ? recorder.send(communicator, other(call.receive[1]), send, site)
               : recorder.receive(communicator, other(call.send[0]), receive,
                                  site);
  }
  }
  return {};
}

Result<void> BuilderRecording::make(const BuiltCollective &call, Place place) {
  const bool isBroadcast = call.kind == CollectiveKind::Broadcast;
  std::vector<DeviceId> devices;
  for (size_t rank = 0; rank < call.send.size(); ++rank) {
    const bool asksReceive =
        isBroadcast || (call.kind == CollectiveKind::SendRecv && rank == 1);
    const BuiltView &view = asksReceive ? call.receive[rank] : call.send[rank];
    devices.push_back(builder.buffers[view.buffer.value].spec.device);
  }
  // A send and its receive are on the communicator of all devices, as NCCL has
  // them (capture/graph/Communication.h): all such follow each other.
  std::vector<DeviceId> members = devices;
  if (call.kind == CollectiveKind::SendRecv) {
    members.clear();
    for (uint32_t k = 0; k < builder.numDevices; ++k)
      members.push_back({int32_t(k)});
  }
  auto known = communicators.find(members);
  if (known == communicators.end()) {
    MGPU_TRY_ASSIGN(const uint32_t made,
                    recorder.createCommunicator(members, place));
    known = communicators.emplace(members, made).first;
  }
  for (size_t rank = 0; rank < devices.size(); ++rank)
    MGPU_TRY(member(call, known->second, rank, place));
  for (DeviceId device : devices)
    MGPU_TRY(recorder.syncDevice(device, place));
  return {};
}

Result<void>
BuilderRecording::make(const std::shared_ptr<ProgramBuilder::Loop> &loop,
                       Place place) {
  const std::string &name = builder.buffers[loop->value.value].spec.name;
  ids.resize(builder.buffers.size());
  auto body = [&](BufferId value) -> Result<void> {
    ids[loop->value.value] = value;
    for (const ProgramBuilder::Call &call : loop->body)
      MGPU_TRY(run(call));
    return {};
  };
  if (loop->trips > 1)
    return recorder.loop({.name = name,
                          .elementType = ElementType::I64,
                          .trips = loop->trips,
                          .first = loop->first,
                          .step = loop->step,
                          .place = place},
                         body);
  const auto bytes = std::as_bytes(std::span(&loop->first, 1));
  return body(recorder.addBuffer(name, DeviceId::host(), BufferRole::Constant,
                                 ElementType::I64, {},
                                 {bytes.begin(), bytes.end()}));
}

Result<Program> BuilderRecording::finish() {
  for (const auto &[id, name] : results)
    MGPU_TRY(recorder.addResult(recorder.whole(id), name));
  MGPU_TRY_ASSIGN(Program program, recorder.finish());
  MGPU_TRY(program.check());
  return program;
}

} // namespace mgpu::planner
