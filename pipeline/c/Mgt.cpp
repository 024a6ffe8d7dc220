// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C interface. No exception leaves it; every failure is a status and a
// sentence.
#include "pipeline/c/mgt.h"

#include "pipeline/Version.h"
#include "pipeline/c/Calls.h"
#include "pipeline/c/OpenedBundle.h"

#include "planner/schedule/Timeline.h"

using namespace mgpu;
using capture::guarded;

mgt_program::mgt_program(std::unique_ptr<capture::OpenedProgram> of)
    : opened(std::move(of)) {
  std::vector<bool> reads = planner::readsFirst(program().dag);
  for (const planner::ProgramArgument &argument : program().arguments)
    needsValue.push_back(argument.buffer && reads[argument.buffer->value]);
  isWritten.resize(numArguments());
}

std::string &capture::lastError() {
  thread_local std::string sentence;
  return sentence;
}

namespace {

Result<pipeline::Meeting> meetingOf(const mgt_ranks *given) {
  MGPU_TRY_ASSIGN(const mgt_ranks ranks,
                  capture::sized(given, "mgt_open_with", "mgt_ranks"));
  pipeline::Meeting out;
  if (ranks.how)
    out.how = ranks.how;
  if (out.how != "auto" && out.how != "tcp" && out.how != "openmpi" &&
      out.how != "mpich")
    return fail(ErrorKind::Usage,
                fmt::format("mgt_open_with: processes do not meet by '{}'; use "
                            "openmpi, mpich, tcp, or NULL",
                            out.how));
  if (ranks.deadline_ms != 0)
    out.deadline = std::chrono::milliseconds(ranks.deadline_ms);
  out.communicator = ranks.communicator;
  if (ranks.count == 0)
    return out;
  if (out.how != "tcp" || !ranks.address || ranks.rank >= ranks.count ||
      ranks.port == 0 || ranks.port > 65535)
    return fail(ErrorKind::Usage,
                fmt::format("mgt_open_with: rank {} of {} at port {}: by tcp, "
                            "a rank below the count, an address and a port "
                            "from 1 to 65535 are needed",
                            ranks.rank, ranks.count, ranks.port));
  out.place = device::TcpPlace{ranks.rank, ranks.count, ranks.address,
                               uint16_t(ranks.port)};
  return out;
}

Result<void> open(const char *path, const char *target,
                  const mgt_options *given, mgt_program **out) {
  if (!path || !out)
    return fail(ErrorKind::Usage,
                "mgt_open: path and program must not be null");
  *out = nullptr;
  mgt_options options{};
  if (given) {
    // "nccl" has been there from the beginning.
    constexpr size_t least = offsetof(mgt_options, nccl) + sizeof options.nccl;
    MGPU_TRY_ASSIGN(
        options, capture::sized(given, "mgt_open_with", "mgt_options", least));
  }
  const std::string where = target ? target : "";
  const std::string nccl = options.nccl ? options.nccl : "";
  if (options.ranks) {
    if (!nccl.empty())
      return fail(ErrorKind::Usage,
                  fmt::format("mgt_open_with: NCCL's settings ({}) are for "
                              "GPUs, and ranks share the host",
                              nccl));
    MGPU_TRY_ASSIGN(const pipeline::Meeting meeting, meetingOf(options.ranks));
    MGPU_TRY_ASSIGN(auto opened,
                    capture::OpenedBundle::openShared(path, where, meeting));
    *out = new mgt_program(std::move(opened));
    return {};
  }
  MGPU_TRY_ASSIGN(auto opened, capture::OpenedBundle::open(path, where, nccl));
  *out = new mgt_program(std::move(opened));
  return {};
}

/// The argument or result of that name that has memory.
Result<size_t> find(const mgt_program *program, const char *name,
                    const char *call) {
  if (!program || !name)
    return fail(ErrorKind::Usage,
                fmt::format("{}: program and name must not be null", call));
  for (size_t k = 0; k < program->numArguments(); ++k) {
    const planner::ProgramArgument &argument = program->argument(k);
    if (argument.name != name)
      continue;
    if (argument.buffer)
      return k;
    return fail(ErrorKind::Usage,
                fmt::format("{}: '{}' was fixed to {} when the bundle was made",
                            call, name, argument.value));
  }
  return fail(ErrorKind::Usage,
              fmt::format("{}: the program has no argument '{}'", call, name));
}

/// Waits for what mgt_replay_on() queued.
Result<void> settle(mgt_program *program) {
  if (!std::exchange(program->isQueued, false))
    return {};
  return program->opened->runner().finish();
}

Result<std::span<std::byte>> memoryOf(mgt_program *program, size_t index,
                                      const void *data, size_t bytes,
                                      const char *call) {
  MGPU_TRY(settle(program));
  const planner::ProgramArgument &argument = program->argument(index);
  const uint64_t size =
      program->program().dag.buffer(*argument.buffer).sizeBytes;
  if (bytes != size || (!data && bytes != 0))
    return fail(ErrorKind::Usage,
                fmt::format("{}: '{}' has {} bytes, and {} are given", call,
                            argument.name, size,
                            data ? std::to_string(bytes) : "none"));
  return program->opened->runner().hostBuffer(*argument.buffer);
}

/// Usage where `memory` of an argument is with another process.
Result<void> requireHere(const mgt_program *program, size_t index,
                         std::span<std::byte> memory, const char *call) {
  const planner::ProgramArgument &argument = program->argument(index);
  const bool isHere =
      !memory.empty() ||
      program->program().dag.buffer(*argument.buffer).sizeBytes == 0;
  if (isHere)
    return {};
  return fail(
      ErrorKind::Usage,
      fmt::format("{}: '{}' is not in the memory of rank {}: ask rank 0", call,
                  argument.name, program->opened->others()->rank()));
}

Result<void> requireLoaded(const mgt_program *program, const char *call) {
  if (!program)
    return fail(ErrorKind::Usage,
                fmt::format("{}: program must not be null", call));
  if (!program->isLoaded)
    return fail(ErrorKind::Usage, fmt::format("{}: call mgt_load first", call));
  return {};
}

std::string *errorOf(mgt_program *program) {
  return program ? &program->error : nullptr;
}

/// Gives `text(program)` for as long as mgt_plan_text() says.
template <typename Text>
mgt_status giveText(mgt_program *program, const char **out, const char *call,
                    Text text) {
  return guarded(errorOf(program), [&]() -> Result<void> {
    if (!program || !out)
      return fail(ErrorKind::Usage,
                  fmt::format("{}: program and text must not be null", call));
    program->text = text();
    *out = program->text.c_str();
    return {};
  });
}

} // namespace

int mgt_version(void) { return MGT_VERSION; }

const char *mgt_version_text(void) {
  static const std::string text = pipeline::versionText("libmgt", "");
  return text.c_str();
}

const char *mgt_error(void) { return capture::lastError().c_str(); }

mgt_status mgt_open(const char *path, const char *target,
                    mgt_program **program) {
  return mgt_open_with(path, target, nullptr, program);
}

mgt_status mgt_open_with(const char *path, const char *target,
                         const mgt_options *options, mgt_program **program) {
  return guarded(nullptr, [&] { return open(path, target, options, program); });
}

void mgt_close(mgt_program *program) {
  if (program) // what it would say nobody asks any more
    (void)guarded(errorOf(program), [&] { return settle(program); });
  delete program;
}

mgt_status mgt_get_rank(const mgt_program *program, uint32_t *rank,
                        uint32_t *count) {
  return guarded(nullptr, [&]() -> Result<void> {
    if (!program || !rank || !count)
      return fail(ErrorKind::Usage,
                  "mgt_get_rank: program, rank and count must not be null");
    const device::Rendezvous *others = program->opened->others();
    *rank = others ? others->rank() : 0;
    *count = others ? others->count() : 1;
    return {};
  });
}

size_t mgt_num_arguments(const mgt_program *program) {
  return program ? program->numArguments() : 0;
}

mgt_status mgt_get_argument(const mgt_program *program, size_t index,
                            mgt_argument *out) {
  return guarded(nullptr, [&]() -> Result<void> {
    if (!program || !out || index >= program->numArguments())
      return fail(
          ErrorKind::Usage,
          fmt::format("mgt_get_argument: there is no argument {}", index));
    const planner::ProgramArgument &argument = program->argument(index);
    // The names of types and roles are literals.
    *out = {
        argument.name.c_str(),
        toString(argument.role).data(),
        toString(argument.elementType).data(),
        argument.shape.size(),
        argument.shape.data(),
        argument.buffer
            ? size_t(program->program().dag.buffer(*argument.buffer).sizeBytes)
            : 0,
        argument.value.c_str(),
        index >= program->program().arguments.size()};
    return {};
  });
}

mgt_status mgt_write(mgt_program *program, const char *name, const void *data,
                     size_t bytes) {
  return guarded(errorOf(program), [&]() -> Result<void> {
    MGPU_TRY_ASSIGN(size_t index, find(program, name, "mgt_write"));
    MGPU_TRY_ASSIGN(auto memory,
                    memoryOf(program, index, data, bytes, "mgt_write"));
    if (!memory.empty()) // else another process has it
      std::memcpy(memory.data(), data, bytes);
    program->isWritten[index] = true;
    return {};
  });
}

mgt_status mgt_read(mgt_program *program, const char *name, void *data,
                    size_t bytes) {
  return guarded(errorOf(program), [&]() -> Result<void> {
    MGPU_TRY_ASSIGN(size_t index, find(program, name, "mgt_read"));
    MGPU_TRY_ASSIGN(auto memory,
                    memoryOf(program, index, data, bytes, "mgt_read"));
    MGPU_TRY(requireHere(program, index, memory, "mgt_read"));
    if (bytes != 0)
      std::memcpy(data, memory.data(), bytes);
    return {};
  });
}

mgt_status mgt_memory(mgt_program *program, const char *name, void **data,
                      size_t *bytes) {
  return guarded(errorOf(program), [&]() -> Result<void> {
    MGPU_TRY_ASSIGN(size_t index, find(program, name, "mgt_memory"));
    if (!data || !bytes)
      return fail(ErrorKind::Usage,
                  "mgt_memory: data and bytes must not be null");
    MGPU_TRY(settle(program));
    std::span<std::byte> memory =
        program->opened->runner().hostBuffer(*program->argument(index).buffer);
    MGPU_TRY(requireHere(program, index, memory, "mgt_memory"));
    *data = memory.data();
    *bytes = memory.size();
    program->isWritten[index] = true;
    return {};
  });
}

mgt_status mgt_bind(mgt_program *program, const char *name, void *data,
                    size_t bytes) {
  return guarded(errorOf(program), [&]() -> Result<void> {
    MGPU_TRY_ASSIGN(size_t index, find(program, name, "mgt_bind"));
    MGPU_TRY(memoryOf(program, index, data, bytes, "mgt_bind"));
    if (program->opened->others())
      return fail(ErrorKind::Unsupported,
                  "mgt_bind: a program of several processes has memory of its "
                  "own; use mgt_write and mgt_read");
    MGPU_TRY(program->opened->runner().bind(
        *program->argument(index).buffer,
        {static_cast<std::byte *>(data), bytes}));
    program->isWritten[index] = true;
    return {};
  });
}

mgt_status mgt_load(mgt_program *program) {
  return guarded(errorOf(program), [&]() -> Result<void> {
    if (!program)
      return fail(ErrorKind::Usage, "mgt_load: program must not be null");
    for (size_t k = 0; k < program->needsValue.size(); ++k)
      if (program->needsValue[k] && !program->isWritten[k])
        return fail(ErrorKind::Usage,
                    fmt::format("mgt_load: argument '{}' is read but has no "
                                "value; call mgt_write first",
                                program->argument(k).name));
    MGPU_TRY(settle(program));
    MGPU_TRY(program->opened->runner().load());
    program->isLoaded = true;
    return {};
  });
}

mgt_status mgt_replay(mgt_program *program) {
  return guarded(errorOf(program), [&]() -> Result<void> {
    MGPU_TRY(requireLoaded(program, "mgt_replay"));
    MGPU_TRY(settle(program));
    return program->opened->runner().replay();
  });
}

mgt_status mgt_replay_on(mgt_program *program, void *stream) {
  return guarded(errorOf(program), [&]() -> Result<void> {
    MGPU_TRY(requireLoaded(program, "mgt_replay_on"));
    program->isQueued = true; // some of it may be, even after an error
    return program->opened->runner().enqueue(stream);
  });
}

mgt_status mgt_fetch(mgt_program *program) {
  return guarded(errorOf(program), [&]() -> Result<void> {
    MGPU_TRY(requireLoaded(program, "mgt_fetch"));
    MGPU_TRY(settle(program));
    return program->opened->runner().fetch();
  });
}

const char *mgt_program_error(const mgt_program *program) {
  return program ? program->error.c_str() : "";
}

mgt_status mgt_plan_text(mgt_program *program, const char **text) {
  return giveText(program, text, "mgt_plan_text", [&] {
    return planner::toText(program->opened->plan(), program->program().dag);
  });
}

mgt_status mgt_explain(mgt_program *program, const char **text) {
  return giveText(program, text, "mgt_explain", [&] {
    return planner::explain(program->opened->plan(), program->program().dag);
  });
}

mgt_status mgt_times(mgt_program *program, const mgt_node_time **times,
                     size_t *count) {
  return guarded(errorOf(program), [&]() -> Result<void> {
    MGPU_TRY(requireLoaded(program, "mgt_times"));
    if (!times || !count)
      return fail(ErrorKind::Usage,
                  "mgt_times: times and count must not be null");
    MGPU_TRY(settle(program));
    MGPU_TRY_ASSIGN(auto replays, program->opened->runner().replayTimed());
    program->times.clear();
    for (const capture::TimedReplay &replay : replays)
      for (const capture::NodeSpan &span : replay.nodes) {
        const planner::DagNode &node = program->program().dag.node(span.node);
        program->times.push_back({node.name.c_str(), node.location.c_str(),
                                  span.startUs, span.endUs});
      }
    *times = program->times.data();
    *count = program->times.size();
    return {};
  });
}
