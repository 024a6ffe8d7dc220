// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/NvrtcCompiler.h"

#include "support/ChildProcess.h"
#include "support/Parallel.h"
#include "support/Progress.h"
#include "support/Sha256.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

namespace mgpu::kernels {

/// The number right before `unit` ("24 registers"), 0 where there is none.
static uint32_t countBefore(std::string_view line, std::string_view unit) {
  size_t at = line.find(unit);
  if (at == std::string_view::npos)
    return 0;
  size_t first = at;
  while (first > 0 && line[first - 1] >= '0' && line[first - 1] <= '9')
    --first;
  uint32_t value = 0;
  std::from_chars(line.data() + first, line.data() + at, value);
  return value;
}

/// The text between the first pair of quotes after `word`.
static std::string_view quotedAfter(std::string_view line,
                                    std::string_view word) {
  size_t at = line.find(word);
  if (at == std::string_view::npos)
    return {};
  size_t first = line.find('\'', at + word.size());
  size_t last =
      first == std::string_view::npos ? first : line.find('\'', first + 1);
  if (last == std::string_view::npos)
    return {};
  return line.substr(first + 1, last - first - 1);
}

std::vector<EntryUsage> parsePtxasLog(std::string_view log) {
  std::vector<EntryUsage> entries;
  for (size_t at = 0; at < log.size();) {
    size_t end = std::min(log.find('\n', at), log.size());
    std::string_view line = log.substr(at, end - at);
    at = end + 1;
    if (auto name = quotedAfter(line, "Compiling entry function");
        !name.empty()) {
      entries.emplace_back().name = name;
    } else if (entries.empty()) {
      continue;
    } else if (line.find("stack frame") != std::string_view::npos) {
      entries.back().stackBytes = countBefore(line, " bytes stack frame");
      entries.back().spillStoreBytes = countBefore(line, " bytes spill stores");
      entries.back().spillLoadBytes = countBefore(line, " bytes spill loads");
    } else if (line.find(" registers") != std::string_view::npos) {
      entries.back().registers = countBefore(line, " registers");
      entries.back().barriers = countBefore(line, " barriers");
      entries.back().sharedBytes = countBefore(line, " bytes smem");
      entries.back().constantBytes = countBefore(line, " bytes cmem[0]");
    }
  }
  return entries;
}

bool hasWarning(std::string_view log) {
  return log.find("warning") != std::string_view::npos;
}

/// Packs a value for the cache: the log's length in 8 bytes, the log, the
/// cubin.
static device::Blob pack(const CompiledKernel &kernel) {
  uint64_t length = kernel.log.size();
  device::Blob blob(sizeof length + length + kernel.cubin.size());
  std::memcpy(blob.data(), &length, sizeof length);
  std::memcpy(blob.data() + sizeof length, kernel.log.data(), length);
  std::copy(kernel.cubin.begin(), kernel.cubin.end(),
            blob.begin() + ptrdiff_t(sizeof length + length));
  return blob;
}

static std::optional<CompiledKernel> unpack(const device::Blob &blob) {
  uint64_t length = 0;
  if (blob.size() < sizeof length)
    return std::nullopt;
  std::memcpy(&length, blob.data(), sizeof length);
  if (length > blob.size() - sizeof length)
    return std::nullopt;
  CompiledKernel kernel;
  kernel.log.assign(reinterpret_cast<const char *>(blob.data()) + sizeof length,
                    length);
  kernel.cubin.assign(blob.begin() + ptrdiff_t(sizeof length + length),
                      blob.end());
  kernel.entries = parsePtxasLog(kernel.log);
  kernel.fromCache = true;
  return kernel;
}

/// The first line of the log that says what is wrong: "k.cu(7): error: ...",
/// "ptxas fatal : ..."; a warning may speak of an "error" before.
static std::string firstError(const std::string &log) {
  size_t at = std::string::npos;
  for (const char *mark : {"): error", "): catastrophic error", "ptxas error",
                           "ptxas fatal", "; error", "; fatal"})
    at = std::min(at, log.find(mark));
  if (at == std::string::npos)
    at = log.find("error");
  if (at == std::string::npos)
    return log.substr(0, log.find('\n'));
  size_t first = log.rfind('\n', at);
  first = first == std::string::npos ? 0 : first + 1;
  // ptxas begins its lines with a byte of its own.
  while (first < at && !std::isgraph(static_cast<unsigned char>(log[first])))
    ++first;
  return log.substr(first, log.find('\n', at) - first);
}

Result<NvrtcCompiler> NvrtcCompiler::open(device::BlobCache *cache,
                                          const std::string &path) {
  MGPU_TRY_ASSIGN(auto library, NvrtcLibrary::open(path));
  return NvrtcCompiler(std::move(library), cache);
}

std::string NvrtcCompiler::version() const {
  return std::to_string(library->major) + "." + std::to_string(library->minor);
}

std::string NvrtcCompiler::cacheKey(const CompileJob &job) const {
  Sha256 hash;
  hash.addField("nvrtc " + version());
  const char *appended = std::getenv("NVRTC_APPEND_FLAGS");
  hash.addField(appended ? appended : "");
  hash.addField(job.arch).addField(job.name).addField(job.source);
  for (const std::string &option : job.options)
    hash.addField(option);
  return hash.hex();
}

Result<void> NvrtcCompiler::checkArchitecture(const CompileJob &job) const {
  int number = 0;
  std::string_view arch = job.arch;
  if (arch.substr(0, 3) == "sm_") {
    const char *last = arch.data() + arch.size();
    auto [end, error] = std::from_chars(arch.data() + 3, last, number);
    // sm_90a and sm_100f name features of one GPU or family.
    bool suffix = last - end == 1 && (*end == 'a' || *end == 'f');
    if (error != std::errc() || (end != last && !suffix))
      number = 0;
  }
  if (std::find(library->architectures.begin(), library->architectures.end(),
                number) != library->architectures.end())
    return {};
  std::string known;
  for (int each : library->architectures)
    known += (known.empty() ? "sm_" : ", sm_") + std::to_string(each);
  return fail(ErrorKind::Usage, "architecture '" + job.arch +
                                    "' is not one of NVRTC " + version() +
                                    "; there are: " + known);
}

/// Programs given up that NVRTC still compiles.
static std::atomic<int> leftPrograms = 0;

bool hasLeftPrograms() { return leftPrograms > 0; }

/// Compiles in a thread of its own; nothing where that had to be left, a
/// cancelled output where NVRTC saw in time that it is to stop.
static std::optional<Result<NvrtcLibrary::Output>>
runWithin(const CompileLimits &limits,
          std::shared_ptr<const NvrtcLibrary> library, const CompileJob &job,
          std::vector<std::string> options) {
  struct Running {
    std::atomic<bool> isToStop = false;
    std::mutex mutex; // guards what follows
    std::condition_variable ended;
    std::optional<Result<NvrtcLibrary::Output>> output;
    bool isLeft = false;
  };
  auto running = std::make_shared<Running>();
  std::thread thread([running, library = std::move(library),
                      source = job.source, name = job.name,
                      options = std::move(options)] {
    auto output = library->compile(source, name, options,
                                   [&] { return running->isToStop.load(); });
    std::lock_guard lock(running->mutex);
    running->output = std::move(output);
    leftPrograms -= running->isLeft;
    running->ended.notify_one();
  });
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  std::optional<Clock::time_point> stopped;
  std::unique_lock lock(running->mutex);
  while (!running->output) {
    const Clock::time_point now = Clock::now();
    if (!stopped &&
        ((limits.cancel && *limits.cancel) ||
         (limits.timeout.count() > 0 && now - start > limits.timeout))) {
      running->isToStop = true;
      stopped = now;
    }
    if (stopped && now - *stopped > limits.grace) {
      running->isLeft = true;
      ++leftPrograms;
      thread.detach();
      return std::nullopt;
    }
    constexpr std::chrono::milliseconds look{5};
    running->ended.wait_for(lock, look);
  }
  lock.unlock();
  thread.join();
  return std::move(running->output);
}

static std::atomic<bool> compilesInProcesses = false;

void compileInProcesses() { compilesInProcesses = true; }

static Bytes bytesOf(const NvrtcLibrary::Output &output) {
  Bytes bytes;
  append(bytes, output.ok);
  append(bytes, output.log);
  append(bytes, std::span<const std::byte>(output.cubin));
  return bytes;
}

static NvrtcLibrary::Output outputOf(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  NvrtcLibrary::Output output;
  output.ok = reader.take<bool>();
  output.log = reader.text();
  output.cubin.assign(reader.rest().begin(), reader.rest().end());
  return output;
}

/// Compiles in a process of its own, which ends with this call; nothing where
/// it had to be stopped.
static std::optional<Result<NvrtcLibrary::Output>>
runInProcess(const CompileLimits &limits, const NvrtcLibrary &library,
             const CompileJob &job, const std::vector<std::string> &options) {
  auto handler = [&](std::span<const std::byte>) -> Outcome<Bytes> {
    auto output = library.compile(job.source, job.name, options, {});
    if (!output)
      return fault(FaultKind::Refused, output.error().message);
    return bytesOf(*output);
  };
  auto started = ChildProcess::start(handler);
  if (!started)
    return fail(std::move(started.error()));
  ChildProcess &worker = *started;
  constexpr double toAsk = 10, look = 0.005, toRead = 60; // seconds
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  Outcome<void> posted = worker.post({}, toAsk);
  ChildProcess *const both[] = {&worker};
  while (posted && !ChildProcess::firstReady(both, look))
    if ((limits.cancel && *limits.cancel) ||
        (limits.timeout.count() > 0 && Clock::now() - start > limits.timeout))
      return std::nullopt;
  auto answer = posted ? worker.receive(toRead)
                       : Outcome<Bytes>(tl::make_unexpected(posted.error()));
  if (!answer)
    return fail(ErrorKind::Internal,
                "NVRTC, compiling " + job.name + ": " + answer.error().what);
  return outputOf(*answer);
}

Result<CompiledKernel>
NvrtcCompiler::compile(const CompileJob &job,
                       const CompileLimits &limits) const {
  MGPU_TRY(checkArchitecture(job));
  std::string key;
  if (cache) {
    key = cacheKey(job);
    if (auto blob = cache->find(key))
      if (auto kernel = unpack(*blob))
        return std::move(*kernel);
  }
  const auto start = std::chrono::steady_clock::now();
  auto asked = [&] { return limits.cancel && *limits.cancel; };
  auto wasStopped = [&] {
    return fail(ErrorKind::Absent,
                "compiling " + job.name + " for " + job.arch +
                    (asked() ? " was cancelled"
                             : " took longer than " +
                                   std::to_string(limits.timeout.count()) +
                                   " ms; allow more time (--compile-timeout)"));
  };
  if (asked())
    return wasStopped();
  std::vector<std::string> options{"--gpu-architecture=" + job.arch,
                                   "--std=c++17", "-Xptxas", "-v"};
  options.insert(options.end(), job.options.begin(), job.options.end());
  std::optional<Result<NvrtcLibrary::Output>> ran;
  if (compilesInProcesses)
    ran = runInProcess(limits, *library, job, options);
  else if (limits.cancel || limits.timeout.count() > 0)
    ran = runWithin(limits, library, job, std::move(options));
  else
    ran = library->compile(job.source, job.name, options, {});
  if (!ran)
    return wasStopped();
  MGPU_TRY_ASSIGN(NvrtcLibrary::Output output, std::move(*ran));
  if (output.cancelled)
    return wasStopped();
  if (!output.ok)
    return fail(ErrorKind::Invalid, "NVRTC does not compile " + job.name +
                                        " for " + job.arch + ": " +
                                        firstError(output.log));
  CompiledKernel kernel;
  kernel.cubin = std::move(output.cubin);
  kernel.log = std::move(output.log);
  kernel.entries = parsePtxasLog(kernel.log);
  kernel.compileMs = std::chrono::duration<double, std::milli>(
                         std::chrono::steady_clock::now() - start)
                         .count();
  if (cache)
    cache->store(key, pack(kernel));
  return kernel;
}

std::vector<Result<CompiledKernel>>
NvrtcCompiler::compileAll(std::span<const CompileJob> jobs,
                          const CompileLimits &limits) const {
  std::vector<Result<CompiledKernel>> results(jobs.size());
  Progress progress("compiling kernels by NVRTC", jobs.size());
  parallelFor(jobs.size(), limits.threads, [&](size_t k) {
    results[k] = compile(jobs[k], limits);
    progress.step();
  });
  return results;
}

Result<std::vector<std::byte>> compileCubin(const std::string &source,
                                            const std::string &name,
                                            const std::string &arch,
                                            device::BlobCache *cache) {
  MGPU_TRY_ASSIGN(auto compiler, NvrtcCompiler::open(cache));
  MGPU_TRY_ASSIGN(
      CompiledKernel kernel,
      compiler.compile({source, name + ".cu", {"--fmad=false"}, arch}));
  return std::move(kernel.cubin);
}

} // namespace mgpu::kernels
