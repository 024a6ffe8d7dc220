// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/mpi/MpiChannel.h"

#include "device/mpi/MpiPlugin.h"
#include "support/Bytes.h"
#include "support/Number.h"
#include "support/Result.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <list>
#include <mutex>
#include <optional>
#include <sched.h>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace mgpu::device {

namespace {

/// Watches MPI while it starts: it waits for ever for a rank that stands still
/// then, and no such call can be given up. Unless this ends within `deadline`
/// (0: never), the process ends, as MPI itself ends processes: with a sentence
/// that names the ranks of this machine that are stopped, and ErrorKind::Absent
/// as its exit code.
class StartWatch {
public:
  StartWatch(std::string mpi, std::chrono::milliseconds deadline);
  ~StartWatch();
  StartWatch(const StartWatch &) = delete;
  StartWatch &operator=(const StartWatch &) = delete;

private:
  void watch();

  const std::string mpi;
  const std::chrono::milliseconds deadline;
  std::mutex mutex;
  std::condition_variable wake;
  bool hasStarted = false;
  std::thread thread;
};

std::string textOf(const std::filesystem::path &file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

struct Process {
  char state = '?';
  pid_t parent = 0;
};

/// From /proc/PID/stat, whose second word may hold anything.
Process processOf(const std::string &pid) {
  const std::string text = textOf("/proc/" + pid + "/stat");
  Process out;
  if (const size_t end = text.rfind(')'); end != std::string::npos)
    std::istringstream(text.substr(end + 1)) >> out.state >> out.parent;
  return out;
}

/// The value that a process was given for a variable, if it may be read.
std::optional<std::string> variableOf(const std::string &pid,
                                      const std::string &name) {
  std::istringstream all(textOf("/proc/" + pid + "/environ"));
  for (std::string each; std::getline(all, each, '\0');)
    if (each.starts_with(name + "="))
      return each.substr(name.size() + 1);
  return std::nullopt;
}

} // namespace

/// "rank 2 (process 4711)" of each process that was started beside this one, is
/// a rank as its environment says, and is stopped.
static std::string stoppedRanks() {
  std::string out;
  std::error_code error;
  for (const auto &entry :
       std::filesystem::directory_iterator("/proc", error)) {
    const std::string pid = entry.path().filename().string();
    if (!numberFrom<uint32_t>(pid))
      continue;
    const Process process = processOf(pid);
    if (process.parent != getppid() || process.state != 'T')
      continue;
    for (const char *name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
      if (const auto rank = variableOf(pid, name)) {
        out += fmt::format("{}rank {} (process {})", out.empty() ? "" : ", ",
                           *rank, pid);
        break;
      }
  }
  return out;
}

StartWatch::StartWatch(std::string mpi, std::chrono::milliseconds deadline)
    : mpi(std::move(mpi)), deadline(deadline) {
  if (deadline.count() > 0)
    thread = std::thread([this] { watch(); });
}

StartWatch::~StartWatch() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    hasStarted = true;
  }
  wake.notify_one();
  if (thread.joinable())
    thread.join();
}

void StartWatch::watch() {
  std::unique_lock<std::mutex> lock(mutex);
  auto hasStartedIn = [&](std::chrono::milliseconds time) {
    return wake.wait_for(lock, time, [this] { return hasStarted; });
  };
  // Once one rank has ended, mpirun ends those that are stopped: so this looks
  // before the first one does.
  const std::chrono::milliseconds rest = deadline / 10;
  if (hasStartedIn(deadline - rest))
    return;
  std::string stopped = stoppedRanks();
  if (hasStartedIn(rest))
    return;
  if (stopped.empty())
    stopped = stoppedRanks();
  fmt::print(stderr,
             "mgpu: error: waited {} ms for {} to start in all ranks; {}\n",
             deadline.count(), mpi,
             stopped.empty()
                 ? "no rank that was started beside this one is stopped: look "
                   "at those of other machines, and at what is between"
                 : stopped + " is stopped");
  std::fflush(stderr);
  std::_Exit(int(ErrorKind::Absent));
}

namespace {

constexpr int dataTag = 1, noticeTag = 2;
constexpr size_t longestText = 1 << 16;

struct Pending {
  uint32_t other = 0;
  void *request = nullptr;
  size_t bytes = 0;
  bool isReceived = false;
};

/// A plug-in has one communicator.
std::atomic<bool> isOpen = false;

class MpiChannel final : public Channel {
public:
  explicit MpiChannel(const MgpuMpi &mpi) : mpi(mpi) { isOpen = true; }
  ~MpiChannel() override { isOpen = false; }

  uint32_t rank() const override { return uint32_t(mpi.rank()); }
  uint32_t count() const override { return uint32_t(mpi.count()); }
  std::string library() const override {
    char text[256] = "";
    mpi.library(text, sizeof text);
    return text;
  }

  void start(std::span<const Outgoing> sends,
             std::span<const Incoming> recvs) override {
    auto eachPart = [](auto bytes, auto &&part) {
      do {
        const size_t size = std::min(bytes.size(), MGPU_MPI_MOST_BYTES);
        part(bytes.first(size));
        bytes = bytes.subspan(size);
      } while (!bytes.empty());
    };
    for (const Incoming &recv : recvs)
      eachPart(recv.bytes, [&](std::span<std::byte> part) {
        add({recv.from,
             mpi.receive(int(recv.from), dataTag, part.data(), part.size()),
             part.size(), true});
      });
    for (const Outgoing &send : sends)
      eachPart(send.bytes, [&](std::span<const std::byte> part) {
        add({send.to, mpi.send(int(send.to), dataTag, part.data(), part.size()),
             part.size(), false});
      });
  }

  Result<bool> advance() override {
    for (Pending &each : pending) {
      size_t bytes = 0;
      const int done = mpi.test(each.request, &bytes);
      if (done == 0)
        continue;
      each.request = nullptr;
      if (each.isReceived && (done < 0 || bytes != each.bytes))
        fault = fmt::format(
            "rank {} sends {} bytes, and rank {} receives {}", each.other,
            done < 0 ? "more" : std::to_string(bytes), rank(), each.bytes);
      else if (done < 0)
        fault = fmt::format("MPI cannot send to rank {}", each.other);
    }
    std::erase_if(pending, [](const Pending &each) { return !each.request; });
    if (!fault.empty())
      return fail(ErrorKind::Absent, fault);
    return pending.empty();
  }

  /// A message that is half here cannot be given up: it is waited for a while.
  void abandon() override {
    for (Pending &each : pending)
      if (each.isReceived)
        mpi.cancel(each.request);
    for (Pending &each : pending) {
      size_t bytes = 0;
      for (int turn = 0; each.isReceived && each.request && turn < 1000; ++turn)
        if (mpi.test(each.request, &bytes) != 0)
          each.request = nullptr;
        else
          usleep(100);
    }
    std::erase_if(pending, [](const Pending &each) { return !each.request; });
  }

  std::optional<uint32_t> awaited() const override {
    if (pending.empty())
      return std::nullopt;
    return pending.front().other; // what is received stands first
  }

  void tell(uint32_t to, const Notice &notice) override {
    Told &told = this->told.emplace_back();
    append(told.bytes, notice.kind);
    append(told.bytes, notice.text.substr(0, longestText));
    told.request =
        mpi.send(int(to), noticeTag, told.bytes.data(), told.bytes.size());
  }

  std::optional<Notice> heard() override {
    int from = 0;
    size_t size = 0;
    if (!mpi.probe(noticeTag, &from, &size))
      return std::nullopt;
    Bytes bytes(size);
    void *request = mpi.receive(from, noticeTag, bytes.data(), bytes.size());
    while (request && mpi.test(request, &size) == 0)
      sched_yield(); // it has come already
    ByteReader reader(bytes);
    Notice out;
    out.kind = reader.take<Notice::Kind>();
    out.from = uint32_t(from);
    out.text = reader.text();
    return out;
  }

  void wait(std::chrono::microseconds most) override {
    if (most.count() == 0)
      sched_yield();
    else
      usleep(useconds_t(most.count()));
  }

  /// MPI that ends in disorder would wait for those that are gone.
  void close(bool isOrderly) override {
    if (!isOrderly)
      return;
    for (Told &each : told)
      for (size_t size = 0; each.request && mpi.test(each.request, &size) == 0;)
        usleep(100);
    mpi.end();
  }

private:
  void add(Pending each) {
    if (!each.request)
      fault = fmt::format("MPI refuses a message of {} bytes", each.bytes);
    else
      pending.push_back(each);
  }

  struct Told {
    Bytes bytes;
    void *request = nullptr;
  };

  const MgpuMpi &mpi;
  std::vector<Pending> pending;
  std::list<Told> told; ///< until the end: there are few
  std::string fault;
};

std::string folderOf(const void *address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || !info.dli_fname)
    return ".";
  // The program itself may be known by the name it was called by.
  char *path = ::realpath(info.dli_fname, nullptr);
  std::string file = path ? path : info.dli_fname;
  std::free(path);
  if (char self[4096]; !path)
    if (const ssize_t size = readlink("/proc/self/exe", self, sizeof self);
        size > 0)
      file.assign(self, size_t(size));
  return file.substr(0, file.rfind('/'));
}

} // namespace

std::string mpiOfEnvironment() {
  auto isSet = [](const char *name) { return std::getenv(name) != nullptr; };
  if (isSet("OMPI_COMM_WORLD_RANK") || isSet("PMIX_RANK"))
    return "openmpi";
  return isSet("PMI_RANK") || isSet("PMI_FD") ? "mpich" : "";
}

Result<std::unique_ptr<Channel>> joinByMpi(const std::string &name,
                                           std::chrono::milliseconds deadline,
                                           const void *communicator) {
  if (isOpen)
    return fail(ErrorKind::Usage,
                "MPI carries one program of several processes at a time: close "
                "the other one first");
  const std::string file = "mgpu-mpi-" + name + ".so";
  const std::string here = folderOf(reinterpret_cast<const void *>(&joinByMpi));
  std::vector<std::string> paths{here + "/" + file,
                                 here + "/../lib/mgpu/" + file,
                                 here + "/mgpu/" + file}; // beside libmgt.so
  if (const char *path = std::getenv("MGPU_MPI_PLUGIN"))
    paths = {path};
  std::string why;
  for (const std::string &path : paths) {
    // Libraries that libmpi opens itself need its symbols.
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
      why = fmt::format("{}{}{}", why, why.empty() ? "" : "; ", dlerror());
      continue;
    }
    auto entry = reinterpret_cast<MgpuMpiEntry>(dlsym(library, "mgpuMpi"));
    const MgpuMpi *mpi = entry ? entry() : nullptr;
    if (!mpi || mpi->version != MGPU_MPI_PLUGIN_VERSION)
      return fail(ErrorKind::Absent,
                  fmt::format("'{}' is not of this version of mgpu: build it "
                              "anew",
                              path));
    char text[256] = "";
    std::optional<StartWatch> watch; // a caller's MPI has started
    if (!communicator)
      watch.emplace(name, deadline);
    const int code = mpi->begin(communicator, text, sizeof text);
    watch.reset();
    if (code != 0)
      return fail(ErrorKind::Absent, fmt::format("{}: {}", name, text));
    return std::make_unique<MpiChannel>(*mpi);
  }
  return fail(ErrorKind::Absent,
              fmt::format("no plug-in for {} ({}): build mgpu where its "
                          "development package is installed, or name the "
                          "plug-in's file by MGPU_MPI_PLUGIN",
                          name, why));
}

} // namespace mgpu::device
