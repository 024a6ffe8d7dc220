// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The calls on an open program.
#include "pipeline/c/OnProgram.h"
#include "pipeline/program/Roles.h"
#include "planner/schedule/Timeline.h"
#include "support/Pt2.h"

using namespace mgpu;
using pipeline::guarded, pipeline::onProgram, pipeline::settle,
    pipeline::requireLoaded;
using pipeline::serve::Event, pipeline::serve::Step;
namespace serve = pipeline::serve;

mgt_status pipeline::failed(mgt_program *program, const char *name,
                            mgt_status status) {
  program->counters.count(Event::Failure);
  const bool isLate =
      program->isOverdue || (program->steps && program->steps->isLate());
  bool isLost =
      isLate || program->isStopped || !program->opened->requireUnchanged();
  if (isLate)
    program->counters.count(Event::DeadlineMiss);
  try {
    if (isLate) {
      program->error = fmt::format("{}: {}", name, program->error);
      pipeline::lastError() = program->error;
    }
    isLost = isLost ||
             (status != MGT_USAGE && !program->opened->runner().checkAlive());
    if (isLost)
      program->lost = program->error;
    program->say(MGT_FAULT, isLost ? "lost: " + program->lost : program->error);
  } catch (...) { // there is no memory for the sentences
    if (isLost && program->lost.empty())
      program->lost.assign("out of memory");
  }
  return isLate ? MGT_LOST : status;
}

mgt_status pipeline::saysLost(mgt_program *program, const char *name) {
  program->counters.count(Event::Failure);
  (void)guarded(&program->error, [&]() -> Result<void> {
    return fail(ErrorKind::Internal,
                fmt::format("{}: the program was lost before ({})", name,
                            program->lost));
  });
  return MGT_LOST;
}

Result<void> pipeline::requireOwnProcess(const mgt_program *program,
                                         const char *name) {
  if (!program->isParents())
    return {};
  return fail(ErrorKind::Usage,
              fmt::format("{}: the program was opened before this process "
                          "was forked, and its threads and GPUs are the "
                          "parent's: open it in this process",
                          name));
}

mgt_status pipeline::saysParents(mgt_program *program, const char *name) {
  return guarded(&program->error,
                 [&] { return requireOwnProcess(program, name); });
}

Result<void> pipeline::OpenedProgram::requireUnchanged() const {
  if (!mapped || !mapped->isChanged())
    return {};
  return fail(ErrorKind::Invalid,
              fmt::format("'{}' was written while a program has its weights "
                          "mapped, so that results since then may be wrong: "
                          "open it again, and replace such a file by another "
                          "of its name",
                          mapped->path()));
}

Result<void> pipeline::requireLoaded(const mgt_program *program,
                                     const char *call) {
  if (!program->isLoaded)
    return fail(ErrorKind::Usage, fmt::format("{}: call mgt_load first", call));
  return {};
}

namespace {

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

const planner::Buffer &bufferOf(const mgt_program *program, size_t index) {
  return program->program().dag.buffer(*program->argument(index).buffer);
}

/// Usage where kernels could not access the argument's elements at `data`.
Result<void> requireAligned(const mgt_program *program, size_t index,
                            const void *data, const char *call) {
  const planner::ProgramArgument &argument = program->argument(index);
  const uint64_t bytes = sizeBytes(argument.elementType);
  if (uintptr_t(data) % bytes == 0)
    return {};
  return fail(ErrorKind::Usage,
              fmt::format("{}: the memory for '{}' must begin at a multiple of "
                          "the {} bytes of its elements",
                          call, argument.name, bytes));
}

/// Finds an argument that has as many bytes as are given.
Result<size_t> findSized(mgt_program *program, const char *name,
                         const void *data, size_t bytes, const char *call) {
  MGPU_TRY_ASSIGN(const size_t index, find(program, name, call));
  const uint64_t size = bufferOf(program, index).sizeBytes;
  if (bytes != size || (!data && bytes != 0))
    return fail(ErrorKind::Usage,
                fmt::format("{}: '{}' has {} bytes, and {} are given", call,
                            name, size, data ? std::to_string(bytes) : "none"));
  MGPU_TRY(settle(program));
  return index;
}

/// Usage where an argument of the host is with another process.
Result<void> requireHere(mgt_program *program, size_t index, const char *call) {
  const planner::Buffer &buffer = bufferOf(program, index);
  if (!program->opened->others() || buffer.sizeBytes == 0 ||
      !program->opened->runner()
           .hostBuffer(*program->argument(index).buffer)
           .empty())
    return {};
  return fail(
      ErrorKind::Usage,
      fmt::format("{}: '{}' is not in the memory of rank {}: ask rank 0", call,
                  program->argument(index).name,
                  program->opened->others()->rank()));
}

/// A resident argument is the devices' from mgt_load() on.
Result<void> requireOurs(const mgt_program *program, size_t index,
                         const char *call) {
  const planner::ProgramArgument &argument = program->argument(index);
  if (!program->isLoaded || argument.role != planner::ArgumentRole::Resident)
    return {};
  return fail(
      ErrorKind::Usage,
      fmt::format("{}: '{}' is resident, and mgt_load() has taken it to "
                  "the devices, where a replay would not see another "
                  "value: open the program again, or make '{}' an input",
                  call, argument.name, argument.name));
}

/// Gives `text(program)` for as long as mgt_plan_text() says.
template <typename Text>
mgt_status giveText(mgt_program *program, const char **out, const char *call,
                    Text text) {
  return onProgram(program, call, [&]() -> Result<void> {
    if (!out)
      return fail(ErrorKind::Usage,
                  fmt::format("{}: text must not be null", call));
    program->text = text();
    *out = program->text.c_str();
    return {};
  });
}

/// A replay as a range of NVTX, where they are asked for.
class ReplayRange {
public:
  explicit ReplayRange(const mgt_program *program) {
    const auto *nvtx =
        program->serving.ranges ? &pipeline::serve::Nvtx::get() : nullptr;
    if (!nvtx || !nvtx->push)
      return;
    nvtx->push(program->facts.name.c_str());
    pop = nvtx->pop;
  }
  ~ReplayRange() {
    if (pop)
      pop();
  }
  ReplayRange(const ReplayRange &) = delete;
  ReplayRange &operator=(const ReplayRange &) = delete;

private:
  int (*pop)() = nullptr;
};

Result<void> replayOnce(mgt_program *program) {
  const ReplayRange range(program);
  MGPU_TRY(program->run(Step::Replay, program->lastUs));
  program->counters.replayed(program->lastUs);
  return {};
}

/// The argument's memory is that of `of`'s argument.
Result<void> share(mgt_program *program, const char *name, mgt_program *of,
                   const char *ofName) {
  const char *call = "mgt_share";
  MGPU_TRY_ASSIGN(const size_t index, find(program, name, call));
  MGPU_TRY_ASSIGN(const size_t ofIndex, find(of, ofName, call));
  const planner::Buffer &buffer = bufferOf(program, index),
                        &lent = bufferOf(of, ofIndex);
  if (buffer.device.isHost() || lent.device != buffer.device ||
      lent.sizeBytes != buffer.sizeBytes)
    return fail(ErrorKind::Usage,
                fmt::format("{}: '{}' and '{}' are not arguments of as many "
                            "bytes on one device",
                            call, name, ofName));
  if (of == program || !of->lost.empty())
    return fail(ErrorKind::Usage,
                fmt::format("{}: the memory is to be that of another program "
                            "that is not lost",
                            call));
  MGPU_TRY(pipeline::requireIdle(of, call));
  MGPU_TRY(pipeline::requireMovable(program, call));
  MGPU_TRY(settle(program));
  capture::Runner &from = of->opened->runner(), &to = program->opened->runner();
  const planner::BufferId id = *program->argument(index).buffer,
                          ofId = *of->argument(ofIndex).buffer;
  MGPU_TRY_ASSIGN(const std::span<std::byte> memory, from.memory(ofId));
  if (from.isOnHost() != to.isOnHost())
    return fail(ErrorKind::Usage,
                fmt::format("{}: one program is on the host and the other on a "
                            "GPU",
                            call));
  MGPU_TRY(to.bind(id, memory));
  // The memory may be a third program's, which lives on as well.
  std::vector<std::shared_ptr<pipeline::OpenedProgram>> owners{of->opened};
  if (const auto third = of->lenders.find(ofIndex); third != of->lenders.end())
    owners.push_back(third->second);
  const auto held = std::make_shared<decltype(owners)>(std::move(owners));
  of->lent.emplace_back(held);
  program->lenders[index] = {held, of->opened.get()};
  program->known[index] = memory;
  program->isWritten[index] = true;
  return {};
}

} // namespace

Result<void> mgt_program::lend(const mgt_input &constant) {
  const char *call = "mgt_options::constants";
  MGPU_TRY_ASSIGN(
      const size_t index,
      findSized(this, constant.name, constant.data, constant.bytes, call));
  if (argument(index).role != planner::ArgumentRole::Resident)
    return fail(ErrorKind::Usage,
                fmt::format("{}: '{}' is not resident but {}: give it to "
                            "mgt_write before each replay",
                            call, constant.name,
                            toString(argument(index).role)));
  MGPU_TRY(requireAligned(this, index, constant.data, call));
  MGPU_TRY(opened->runner().lend(
      *argument(index).buffer,
      {static_cast<const std::byte *>(constant.data), constant.bytes}));
  isWritten[index] = true;
  return {};
}

Result<void> mgt_program::takeWeights(const std::string &file) {
  MGPU_TRY_ASSIGN(Pt2Archive archive, Pt2Archive::open(file));
  capture::Runner &runner = opened->runner();
  bool isMapped = false;
  for (size_t k = 0; k < program().arguments.size(); ++k) {
    const planner::ProgramArgument &to = argument(k);
    MGPU_TRY_ASSIGN(const bool has, archive.has(to.name));
    if (!has || !to.buffer || to.role == planner::ArgumentRole::Input)
      continue;
    MGPU_TRY_ASSIGN(const Pt2Tensor weight, archive.tensor(to.name));
    if (weight.elementType != to.elementType || weight.shape != to.shape)
      return fail(ErrorKind::Invalid,
                  fmt::format("weight '{}' of '{}' is {}, and the program has "
                              "{}",
                              to.name, file,
                              describe(weight.elementType, weight.shape),
                              describe(to.elementType, to.shape)));
    const std::span<const std::byte> bytes = weight.data.bytes;
    const bool isRead = weight.data.holder == archive.mapped() &&
                        bytes.size() >= capture::SharedBytes::least &&
                        to.role == planner::ArgumentRole::Resident &&
                        requireAligned(this, k, bytes.data(), "");
    MGPU_TRY(isRead ? runner.lend(*to.buffer, bytes)
                    : runner.write(*to.buffer, bytes));
    isWritten[k] = true;
    isMapped |= isRead;
  }
  // Elsewhere than on the host of one process all is copied.
  if (isMapped && runner.isOnHost() && !opened->others())
    opened->mapped = archive.mapped();
  return opened->requireUnchanged();
}

std::string mgt_program::stale() const {
  for (size_t k : fresh)
    if (!isGiven[k])
      return fmt::format("'{}' is stale: it was not written since the replay "
                         "before",
                         argument(k).name);
  return "";
}

Result<void> mgt_program::replay(bool isAsked, std::string &difference) {
  difference.clear();
  const auto plain = [&](double &us) {
    const ReplayRange range(this);
    return run(Step::Replay, us);
  };
  const auto done = auditor->replay(
      isAsked, [&] { return stale(); }, plain, lastUs);
  isGiven.assign(isGiven.size(), false);
  if (watch && (!done || done->isAudited)) // the audit observed in its place
    MGPU_TRY(opened->runner().observe(watch.get()));
  if (!done)
    return fail(done.error());
  if (!done->isAudited) {
    counters.replayed(lastUs);
    return {};
  }
  counters.count(Event::Replay);
  counters.count(Event::Audit);
  if (done->difference.empty())
    return {};
  counters.count(Event::Difference);
  difference = fmt::format("audit of replay {}: {}", counters.of(Event::Replay),
                           done->difference);
  if (done->stops) {
    isStopped = true;
    return fail(ErrorKind::Internal, difference);
  }
  say(MGT_FAULT, difference);
  return {};
}

Result<void> pipeline::giveFigures(const planner::Program &program,
                                   const planner::Plan &plan, const char *call,
                                   mgt_figures *figures) {
  constexpr size_t least = MGPU_SIZE_UP_TO(mgt_figures, upload_us);
  if (!figures || figures->size < least)
    return fail(ErrorKind::Usage,
                fmt::format("{}: figures must not be null, and their size is "
                            "sizeof(mgt_figures)",
                            call));
  const Uploads uploads = uploadsOf(program, durationsOf(plan, program.dag));
  mgt_figures out{figures->size,
                  plan.loadUs,
                  plan.makespanUs,
                  plan.fetchUs,
                  plan.lowerBoundUs,
                  0,
                  0,
                  uploads.arguments,
                  uploads.bytes,
                  uploads.us};
  for (const planner::ProgramArgument &argument : program.arguments)
    if (argument.role == planner::ArgumentRole::Resident && argument.buffer) {
      ++out.resident_arguments;
      out.resident_bytes += program.dag.buffer(*argument.buffer).sizeBytes;
    }
  std::memcpy(figures, &out, std::min(figures->size, sizeof out));
  return {};
}

mgt_status mgt_get_facts(mgt_program *program, mgt_facts *facts) {
  return onProgram(program, "mgt_get_facts", [&]() -> Result<void> {
    if (!facts || facts->size < MGPU_SIZE_UP_TO(mgt_facts, host_bytes))
      return fail(ErrorKind::Usage,
                  "mgt_get_facts: facts must not be null, and their size is "
                  "sizeof(mgt_facts)");
    const pipeline::Facts &known = program->facts;
    const auto memory =
        pipeline::memoryOf(program->program(), program->opened->plan());
    const mgt_facts out{facts->size,
                        known.name.c_str(),
                        known.version.c_str(),
                        known.hash.c_str(),
                        known.source.c_str(),
                        known.sourceHash.c_str(),
                        known.target.c_str(),
                        known.code.c_str(),
                        known.device.c_str(),
                        program->program().dag.numDevices,
                        program->program().dag.nodes.size(),
                        memory.mostOfDevice,
                        memory.devices,
                        memory.host,
                        known.options.c_str()};
    std::memcpy(facts, &out, std::min(facts->size, sizeof out));
    return {};
  });
}

mgt_status mgt_argument_device(const mgt_program *program, size_t index,
                               int32_t *device) {
  return guarded(nullptr, [&]() -> Result<void> {
    if (!program || !device || index >= program->described.size())
      return fail(
          ErrorKind::Usage,
          fmt::format("mgt_argument_device: there is no argument {}", index));
    MGPU_TRY(pipeline::requireOwnProcess(program, "mgt_argument_device"));
    const std::lock_guard guard(program->lock);
    *device = program->argument(index).buffer
                  ? bufferOf(program, index).device.value
                  : MGT_HOST;
    return {};
  });
}

mgt_status mgt_write(mgt_program *program, const char *name, const void *data,
                     size_t bytes) {
  const char *call = "mgt_write";
  return onProgram(program, call, [&]() -> Result<void> {
    MGPU_TRY_ASSIGN(const size_t index,
                    findSized(program, name, data, bytes, call));
    MGPU_TRY(requireOurs(program, index, call));
    capture::Runner &runner = program->opened->runner();
    const planner::BufferId id = *program->argument(index).buffer;
    MGPU_TRY(runner.makeOwn(id, false));
    MGPU_TRY(runner.write(id, {static_cast<const std::byte *>(data), bytes}));
    program->isWritten[index] = program->isGiven[index] = true;
    return {};
  });
}

mgt_status mgt_read(mgt_program *program, const char *name, void *data,
                    size_t bytes) {
  const char *call = "mgt_read";
  return onProgram(program, call, [&]() -> Result<void> {
    MGPU_TRY_ASSIGN(const size_t index,
                    findSized(program, name, data, bytes, call));
    MGPU_TRY(requireHere(program, index, call));
    return program->opened->runner().read(
        *program->argument(index).buffer,
        {static_cast<std::byte *>(data), bytes});
  });
}

mgt_status mgt_memory(mgt_program *program, const char *name, void **data,
                      size_t *bytes) {
  const char *call = "mgt_memory";
  return onProgram(program, call, [&]() -> Result<void> {
    MGPU_TRY_ASSIGN(const size_t index, find(program, name, call));
    if (!data || !bytes)
      return fail(ErrorKind::Usage,
                  fmt::format("{}: data and bytes must not be null", call));
    MGPU_TRY(settle(program));
    MGPU_TRY(requireHere(program, index, call));
    capture::Runner &runner = program->opened->runner();
    const planner::BufferId id = *program->argument(index).buffer;
    MGPU_TRY(runner.makeOwn(id, true));
    MGPU_TRY_ASSIGN(const std::span<std::byte> memory, runner.memory(id));
    if (program->known.try_emplace(index, memory).second)
      program->lenders.try_emplace(index, program->opened);
    *data = memory.data();
    *bytes = memory.size();
    program->isWritten[index] = true;
    return {};
  });
}

mgt_status mgt_bind(mgt_program *program, const char *name, void *data,
                    size_t bytes) {
  const char *call = "mgt_bind";
  return onProgram(program, call, [&]() -> Result<void> {
    MGPU_TRY_ASSIGN(const size_t index,
                    findSized(program, name, data, bytes, call));
    MGPU_TRY(requireAligned(program, index, data, call));
    MGPU_TRY(pipeline::requireMovable(program, call));
    if (program->opened->others())
      return fail(ErrorKind::Unsupported,
                  "mgt_bind: a program of several processes has memory of its "
                  "own; use mgt_write and mgt_read");
    MGPU_TRY(program->opened->runner().bind(
        *program->argument(index).buffer,
        {static_cast<std::byte *>(data), bytes}));
    program->lenders.erase(index);
    program->known[index] = {static_cast<std::byte *>(data), bytes};
    program->isWritten[index] = program->isGiven[index] = true;
    return {};
  });
}

mgt_status mgt_share(mgt_program *program, const char *name, mgt_program *of,
                     const char *of_name) {
  const char *call = "mgt_share";
  const auto shares = [&] { return share(program, name, of, of_name); };
  if (!program || !of || program == of)
    return onProgram(program, call, shares);
  for (mgt_program *each : {program, of})
    if (each->isParents())
      return pipeline::saysParents(each, call);
  const std::scoped_lock guard(program->lock, of->lock);
  return pipeline::onLocked(program, call, shares);
}

mgt_status mgt_load(mgt_program *program) {
  return onProgram(program, "mgt_load", [&]() -> Result<void> {
    for (size_t k = 0; k < program->needsValue.size(); ++k)
      if (program->needsValue[k] && !program->isWritten[k])
        return fail(ErrorKind::Usage,
                    fmt::format("mgt_load: argument '{}' is read but has no "
                                "value; call mgt_write first",
                                program->argument(k).name));
    MGPU_TRY(settle(program));
    double us = 0;
    MGPU_TRY(program->run(Step::Load, us));
    if (serve::Audit *audit = program->opened->audit())
      MGPU_TRY(audit->load());
    program->isLoaded = true;
    program->say(MGT_INFO, "loaded what is resident");
    return {};
  });
}

Result<void> pipeline::replayNow(mgt_program *program) {
  MGPU_TRY(settle(program));
  if (!program->auditor)
    return replayOnce(program);
  return program->replay(false, program->text);
}

mgt_status mgt_replay(mgt_program *program) {
  return onProgram(program, "mgt_replay", [&]() -> Result<void> {
    MGPU_TRY(requireLoaded(program, "mgt_replay"));
    return pipeline::replayNow(program);
  });
}

mgt_status mgt_audit(mgt_program *program, const char **difference) {
  return onProgram(program, "mgt_audit", [&]() -> Result<void> {
    if (!difference || !program->auditor)
      return fail(ErrorKind::Usage,
                  "mgt_audit: difference must not be null, and the program is "
                  "opened with mgt_options::audit");
    MGPU_TRY(requireLoaded(program, "mgt_audit"));
    if (program->auditor->fallsBack())
      return fail(ErrorKind::Unsupported,
                  "mgt_audit: since an audit differed the reference is "
                  "replayed, with which nothing is left to be compared");
    const Result<void> done = program->replay(true, program->text);
    *difference = program->text.c_str();
    return done;
  });
}

mgt_status mgt_fetch(mgt_program *program) {
  return onProgram(program, "mgt_fetch", [&]() -> Result<void> {
    MGPU_TRY(requireLoaded(program, "mgt_fetch"));
    MGPU_TRY(settle(program));
    double us = 0;
    return program->run(Step::Fetch, us);
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

mgt_status mgt_configuration(mgt_program *program, const char **text) {
  return giveText(program, text, "mgt_configuration",
                  [&] { return program->opened->configuration(); });
}

mgt_status mgt_get_figures(mgt_program *program, mgt_figures *figures) {
  return onProgram(program, "mgt_get_figures", [&] {
    return pipeline::giveFigures(program->program(), program->opened->plan(),
                                 "mgt_get_figures", figures);
  });
}

mgt_status mgt_times(mgt_program *program, const mgt_node_time **times,
                     size_t *count) {
  return onProgram(program, "mgt_times", [&]() -> Result<void> {
    MGPU_TRY(requireLoaded(program, "mgt_times"));
    if (!times || !count)
      return fail(ErrorKind::Usage,
                  "mgt_times: times and count must not be null");
    if (program->auditor && program->auditor->fallsBack())
      return fail(ErrorKind::Unsupported,
                  "mgt_times: since an audit differed the reference is "
                  "replayed, whose nodes are not timed");
    MGPU_TRY(settle(program));
    double us = 0;
    program->isGiven.assign(program->isGiven.size(), false);
    MGPU_TRY(program->run(Step::TimedReplay, us));
    program->times.clear();
    for (const capture::TimedReplay &replay : program->timed)
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
