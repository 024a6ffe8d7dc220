// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/mpi/MpiChannel.h"

#include "device/mpi/MpiPlugin.h"
#include "device/mpi/StartWatch.h"
#include "support/Bytes.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <fmt/format.h>
#include <list>
#include <sched.h>
#include <unistd.h>

namespace mgpu::device {

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
