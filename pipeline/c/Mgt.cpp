// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C interface: what opens and closes programs, and says what they take. No
// exception leaves it; every failure is a status and a sentence.
#include "pipeline/c/mgt.h"

#include "pipeline/c/MeetingOf.h"
#include "pipeline/c/OnProgram.h"
#include "pipeline/c/OpenedBundle.h"
#include "pipeline/program/Version.h"
#include "support/FileIO.h"
#include "support/Units.h"

#include <atomic>
#include <pthread.h>

using namespace mgpu;
using pipeline::guarded;

mgt_program::mgt_program(std::unique_ptr<pipeline::OpenedProgram> of,
                         const pipeline::Serving &serving)
    : counters(of->program().dag.name) {
  opened = std::move(of);
  this->serving = serving;
  facts = opened->facts();
  std::vector<bool> reads = planner::readsFirst(program().dag);
  for (const planner::ProgramArgument &argument : program().arguments)
    needsValue.push_back(argument.buffer && reads[argument.buffer->value]);
  isWritten.resize(numArguments());
  for (size_t k = 0; k < numArguments(); ++k)
    described.push_back(argument(k));
}

Result<void> mgt_program::start() {
  using namespace pipeline::serve;
  if (!opened->runner().isOnHost())
    serving.deadline = {}; // the driver's own
  const bool isAlone = opened->runner().isOnHost() && !opened->others();
  const bool marks = serving.ranges && Nvtx::get().push;
  if (serving.ranges && !marks)
    say(MGT_WARNING, "no ranges of NVTX: its library is not found "
                     "(libnvToolsExt.so.1, libnvtx3interop.so.1)");
  if ((marks && isAlone) || serving.deadline.count() > 0) {
    watch = std::make_shared<NodeWatch>(program().dag, marks);
    MGPU_TRY(opened->runner().observe(watch.get()));
  }
  if (Audit *audit = opened->audit())
    auditor = std::make_unique<Auditor>(*audit, serving.audit);
  for (const std::string &name : pipeline::wordsOf(serving.fresh)) {
    size_t k = 0;
    while (k < program().arguments.size() && argument(k).name != name)
      ++k;
    if (k == program().arguments.size())
      return fail(
          ErrorKind::Usage,
          fmt::format("audit_fresh: the program has no argument '{}'", name));
    if (!argument(k).buffer ||
        argument(k).role == planner::ArgumentRole::Resident)
      return fail(ErrorKind::Usage,
                  fmt::format("audit_fresh: '{}' is {}, and is not written "
                              "before each replay",
                              name,
                              argument(k).buffer
                                  ? "resident"
                                  : "fixed to " + argument(k).value));
    fresh.push_back(k);
  }
  isGiven.resize(numArguments());
  if (serving.deadline.count() > 0)
    steps = std::make_unique<StepThread>(opened, opened->runner(), watch,
                                         serving.deadline);
  say(MGT_INFO,
      fmt::format("opened '{}' {} made by mgpu {} on {}{}{}", facts.name,
                  facts.hash.substr(0, 12), facts.version, facts.device,
                  facts.code.empty() ? "" : ", code ", facts.code));
  return {};
}

mgt_program::~mgt_program() {
  try {
    say(MGT_INFO,
        fmt::format("closed '{}' after {} replays, {} failures", facts.name,
                    counters.of(pipeline::serve::Event::Replay),
                    counters.of(pipeline::serve::Event::Failure)));
  } catch (...) { // there is no memory for the line
  }
  if (steps && steps->isLate())
    for (auto &[index, lender] : lenders)
      steps->keep(std::move(lender));
}

Result<void> pipeline::giveProgram(std::unique_ptr<OpenedProgram> opened,
                                   const Serving &serving,
                                   const mgt_options &values,
                                   mgt_program **out) {
  auto made = std::make_unique<mgt_program>(std::move(opened), serving);
  MGPU_TRY(made->start());
  if (values.weights)
    MGPU_TRY(made->takeWeights(values.weights));
  for (const mgt_input &constant :
       std::span(values.constants, values.num_constants))
    MGPU_TRY(made->lend(constant));
  *out = made.release();
  return {};
}

uint32_t pipeline::numForks() {
  static std::atomic<uint32_t> count{0};
  static const int asked = ::pthread_atfork(nullptr, nullptr, [] { ++count; });
  (void)asked; // without memory for it no fork is noticed
  return count.load(std::memory_order_relaxed);
}

std::string &pipeline::lastError() {
  thread_local std::string sentence;
  return sentence;
}

namespace {

using Source = pipeline::OpenedBundle::Source;

Result<void> open(const Source &source, const char *target,
                  const mgt_options *given, mgt_program **out) {
  mgt_options options{};
  if (given) {
    // "nccl" has been there from the beginning.
    MGPU_TRY_ASSIGN(options,
                    pipeline::sized(given, "mgt_open_with", "mgt_options",
                                    MGPU_SIZE_UP_TO(mgt_options, nccl)));
  }
  const std::string where = target ? target : "";
  pipeline::OpenedBundle::How how{
      options.nccl ? options.nccl : "",
      std::chrono::milliseconds(options.deadline_ms),
      options.threads,
      options.cpu ? options.cpu : "",
      options.pin != 0,
      std::nullopt,
      options.roles ? options.roles : ""};
  if (options.memory) {
    MGPU_TRY_ASSIGN(how.memory, parseByteSize(options.memory, "memory"));
  }
  how.audits = options.audit > 0;
  const pipeline::Serving serving{
      how.deadline,
      options.log,
      options.log_user,
      options.ranges != 0,
      {options.audit, pipeline::serve::OnDifference(options.audit_action)},
      options.audit_fresh ? options.audit_fresh : ""};
  if (options.audit_action < MGT_AUDIT_GO_ON ||
      options.audit_action > MGT_AUDIT_FALL_BACK ||
      (options.audit == 0 && (options.audit_action || options.audit_fresh)))
    return fail(ErrorKind::Usage,
                "mgt_open_with: audit_action is none, or audit is 0 and what "
                "else is of audits is not");
  if (options.audit > 0 && (options.ranks || (options.deadline_ms > 0 &&
                                              !device::isCudaTarget(where))))
    return fail(ErrorKind::Unsupported,
                "audits are of one process, and on the host without a "
                "deadline: leave ranks and deadline_ms out");
  if (options.num_constants > 0 && !options.constants)
    return fail(ErrorKind::Usage,
                "mgt_open_with: constants must not be null where there are "
                "any");
  if (options.ranks) {
    MGPU_TRY_ASSIGN(const pipeline::Meeting meeting,
                    pipeline::meetingOf("mgt_open_with", options.ranks));
    MGPU_TRY_ASSIGN(auto opened, pipeline::OpenedBundle::openShared(
                                     source, where, how, meeting));
    return pipeline::giveProgram(std::move(opened), serving, options, out);
  }
  MGPU_TRY_ASSIGN(auto opened,
                  pipeline::OpenedBundle::open(source, where, how));
  return pipeline::giveProgram(std::move(opened), serving, options, out);
}

} // namespace

int mgt_version(void) { return MGT_VERSION; }

const char *mgt_version_text(void) {
  static const std::string text = pipeline::versionText("libmgt", "");
  return text.c_str();
}

const char *mgt_error(void) { return pipeline::lastError().c_str(); }

mgt_status mgt_open(const char *path, const char *target,
                    mgt_program **program) {
  return mgt_open_with(path, target, nullptr, program);
}

mgt_status mgt_open_with(const char *path, const char *target,
                         const mgt_options *options, mgt_program **program) {
  return guarded(nullptr, [&]() -> Result<void> {
    if (!path || !program)
      return fail(ErrorKind::Usage,
                  "mgt_open: path and program must not be null");
    *program = nullptr;
    return open({path, {}}, target, options, program);
  });
}

mgt_status mgt_open_memory(const void *data, size_t bytes, const char *target,
                           const mgt_options *options, mgt_program **program) {
  return guarded(nullptr, [&]() -> Result<void> {
    if (!data || bytes == 0 || !program)
      return fail(ErrorKind::Usage, "mgt_open_memory: data and program must "
                                    "not be null, and there are bytes");
    *program = nullptr;
    return open({"", {static_cast<const std::byte *>(data), bytes}}, target,
                options, program);
  });
}

void mgt_close(mgt_program *program) {
  if (program && program->isParents()) // who ends the threads and the GPUs
    return;
  if (program) // what it says nobody asks any more
    (void)guarded(&program->error, [&] { return pipeline::settle(program); });
  delete program;
}

mgt_status mgt_get_counters(const mgt_program *program,
                            mgt_counters *counters) {
  return guarded(nullptr, [&]() -> Result<void> {
    if (!program || !counters ||
        counters->size < MGPU_SIZE_UP_TO(mgt_counters, most_us))
      return fail(ErrorKind::Usage,
                  "mgt_get_counters: program and counters must not be null, "
                  "and their size is sizeof(mgt_counters)");
    using pipeline::serve::Event;
    const pipeline::serve::Counters &now = program->counters;
    const mgt_counters out{counters->size,
                           now.of(Event::Replay),
                           now.of(Event::Failure),
                           now.of(Event::DeadlineMiss),
                           now.lastUs(),
                           now.totalUs(),
                           now.quantileUs(0.5),
                           now.quantileUs(0.9),
                           now.quantileUs(0.99),
                           now.quantileUs(0.999),
                           now.mostUs(),
                           now.of(Event::Audit),
                           now.of(Event::Difference)};
    std::memcpy(counters, &out, std::min(counters->size, sizeof out));
    return {};
  });
}

mgt_status mgt_metrics_text(const char **text) {
  return guarded(nullptr, [&]() -> Result<void> {
    if (!text)
      return fail(ErrorKind::Usage, "mgt_metrics_text: text must not be null");
    thread_local std::string own;
    own = pipeline::serve::metricsText();
    *text = own.c_str();
    return {};
  });
}

mgt_status mgt_write_metrics(const char *path) {
  return guarded(nullptr, [&]() -> Result<void> {
    if (!path)
      return fail(ErrorKind::Usage, "mgt_write_metrics: path must not be null");
    return writeFileAtomic(path, pipeline::serve::metricsText());
  });
}

mgt_status mgt_get_rank(const mgt_program *program, uint32_t *rank,
                        uint32_t *count) {
  return guarded(nullptr, [&]() -> Result<void> {
    if (!program || !rank || !count)
      return fail(ErrorKind::Usage,
                  "mgt_get_rank: program, rank and count must not be null");
    MGPU_TRY(pipeline::requireOwnProcess(program, "mgt_get_rank"));
    const std::lock_guard guard(program->lock);
    const device::Rendezvous *others = program->opened->others();
    *rank = others ? others->rank() : 0;
    *count = others ? others->count() : 1;
    return {};
  });
}

size_t mgt_num_arguments(const mgt_program *program) {
  return program ? program->described.size() : 0;
}

mgt_status mgt_get_argument(const mgt_program *program, size_t index,
                            mgt_argument *out) {
  return guarded(nullptr, [&]() -> Result<void> {
    if (!program || !out || index >= program->described.size())
      return fail(
          ErrorKind::Usage,
          fmt::format("mgt_get_argument: there is no argument {}", index));
    MGPU_TRY(pipeline::requireOwnProcess(program, "mgt_get_argument"));
    const std::lock_guard guard(program->lock);
    const planner::ProgramArgument &argument = program->described[index];
    // The names of types and roles are literals.
    *out = {argument.name.c_str(),
            toString(argument.role).data(),
            toString(argument.elementType).data(),
            argument.shape.size(),
            argument.shape.data(),
            argument.buffer
                ? size_t(program->program()
                             .dag.buffer(*program->argument(index).buffer)
                             .sizeBytes)
                : 0,
            argument.value.c_str(),
            index >= program->program().arguments.size()};
    return {};
  });
}
