// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_CUDA_FAKENCCLCALLS_H
#define MGPU_TESTS_UNIT_CUDA_FAKENCCLCALLS_H

// What the files of FakeNccl share.

#include "FakeCollective.h"
#include "FakeNccl.h"

#include <optional>
#include <string>
#include <utility>

namespace mgpu::fake {

/// Notes the call, and fails it if it is the one to fail.
device::NcclResult ncclEnter(const char *name);
void ncclViolation(const std::string &text);
/// A live communicator that is not in the middle of another call, which is a
/// violation; null where it is no more, another one.
FakeComm *commOf(device::NcclComm handle, const char *call);
/// What a call ends with that a communicator goes on with.
device::NcclResult begun(FakeComm &comm);

/// Those of memory and windows (FakeNcclWindows.cpp).
void addWindowCalls(device::NcclApi &api);
/// Number and offset of the window of the communicator in which these bytes
/// are; none: in none.
std::optional<std::pair<size_t, uint64_t>>
inWindow(const FakeComm &comm, const void *data, size_t bytes);
/// Where the ends of a collective are, as all ranks must have them: the guide
/// wants both in windows or neither, and equal offsets from a window's
/// beginning; but for the in-place forms of nccl.h:428 and 445.
std::string windowsOf(const FakeComm &comm, const Work &work, size_t sendBytes,
                      size_t recvBytes);

#define MGPU_FAKE_NCCL_ENTER(name)                                             \
  FakeNccl &nccl = FakeNccl::instance();                                       \
  if (NcclResult code = ncclEnter(name); code != NcclResult::Success)          \
    return code;

} // namespace mgpu::fake

#endif // MGPU_TESTS_UNIT_CUDA_FAKENCCLCALLS_H
