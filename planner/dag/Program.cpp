// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dag/Program.h"

#include "support/Array.h"

#include <fmt/format.h>

namespace mgpu::planner {

std::string_view toString(ArgumentRole role) {
  constexpr std::string_view names[] = {"input",    "output",      "inout",
                                        "resident", "specialised", "dynamic"};
  return names[size_t(role)];
}

std::vector<bool> readsFirst(const Dag &dag) {
  std::vector<bool> touched(dag.buffers.size()), reads(dag.buffers.size());
  for (const DagNode &node : dag.nodes)
    for (const BufferUse &use : node.uses) {
      if (use.reads && !touched[use.buffer.value])
        reads[use.buffer.value] = true;
      if (use.writes)
        touched[use.buffer.value] = true;
    }
  return reads;
}

namespace {

tl::unexpected<Error> bad(std::string message) {
  return fail(ErrorKind::Invalid, std::move(message));
}

bool covers(const Box &outer, const Box &inner) {
  auto [begin, end] = inner.byteRange();
  if (begin >= end || outer == inner)
    return true;
  auto [outerBegin, outerEnd] = outer.byteRange();
  return outer.isContiguous() && outerBegin <= begin && end <= outerEnd;
}

Result<void> checkUse(const Dag &dag, const DagNode &node, BufferId buffer,
                      const Box &box, bool writes) {
  for (const BufferUse &use : node.uses)
    if (use.buffer == buffer && (writes ? use.writes : use.reads) &&
        covers(use.box, box))
      return {};
  auto [begin, end] = box.byteRange();
  if (begin >= end)
    return {};
  return bad(fmt::format("node \"{}\" {} buffer \"{}\" without saying so among "
                         "its uses",
                         node.name, writes ? "writes" : "reads",
                         dag.buffer(buffer).name));
}

Result<void> checkUses(const Dag &dag, const DagNode &node) {
  if (auto *copy = std::get_if<CopyCall>(&node.work)) {
    MGPU_TRY(checkUse(dag, node, copy->source, copy->sourceBox, false));
    return checkUse(dag, node, copy->destination, copy->destinationBox, true);
  }
  auto *call = std::get_if<CollectiveCall>(&node.work);
  if (!call)
    return {};
  for (size_t rank = 0; rank < call->members.size(); ++rank) {
    const CollectiveMember &member = call->members[rank];
    auto [sends, receives] = sidesOf(*call, rank);
    // A root does not write what it keeps where it is.
    receives &= call->kind != CollectiveKind::Broadcast || rank != call->root ||
                member.send != member.recv ||
                !(member.sendBox == member.recvBox);
    if (sends)
      MGPU_TRY(checkUse(dag, node, member.send, member.sendBox, false));
    if (receives)
      MGPU_TRY(checkUse(dag, node, member.recv, member.recvBox, true));
  }
  return {};
}

Result<void> checkArgument(const Dag &dag, const ProgramArgument &argument,
                           bool isResult) {
  bool specialised = argument.role == ArgumentRole::Specialised;
  if (specialised != !argument.buffer || (specialised && isResult))
    return bad(fmt::format("\"{}\" has role {} and {} buffer", argument.name,
                           toString(argument.role),
                           argument.buffer ? "a" : "no"));
  if (!specialised && !argument.value.empty())
    return bad(fmt::format("\"{}\" has a value, but is not specialised",
                           argument.name));
  if (!argument.buffer)
    return {};
  if (argument.buffer->value >= dag.buffers.size())
    return bad(fmt::format("\"{}\" is buffer {}, but there are {}",
                           argument.name, argument.buffer->value,
                           dag.buffers.size()));
  const Buffer &buffer = dag.buffer(*argument.buffer);
  if (isResult ? !buffer.device.isHost() : buffer.role != BufferRole::Argument)
    return bad(fmt::format("\"{}\" is buffer \"{}\", which is not an argument",
                           argument.name, buffer.name));
  Result<int64_t> bytes = arrayBytes(argument.elementType, argument.shape);
  if (!bytes || uint64_t(*bytes) != buffer.sizeBytes)
    return bad(fmt::format(
        "\"{}\" is {}, but its buffer has {} bytes", argument.name,
        describe(argument.elementType, argument.shape), buffer.sizeBytes));
  return {};
}

} // namespace

Result<void> Program::check() const {
  MGPU_TRY(dag.check());
  for (const DagNode &node : dag.nodes)
    MGPU_TRY(checkUses(dag, node));
  for (const ProgramArgument &argument : arguments)
    MGPU_TRY(checkArgument(dag, argument, false));
  for (const ProgramArgument &result : results)
    MGPU_TRY(checkArgument(dag, result, true));
  return {};
}

} // namespace mgpu::planner
