// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_MPI_STARTWATCH_H
#define MGPU_DEVICE_MPI_STARTWATCH_H

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace mgpu::device {

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

/// "rank 2 (process 4711)" of each process that was started beside this one, is
/// a rank as its environment says, and is stopped.
std::string stoppedRanks();

} // namespace mgpu::device

#endif // MGPU_DEVICE_MPI_STARTWATCH_H
