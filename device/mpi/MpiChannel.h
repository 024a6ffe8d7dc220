// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_MPI_MPICHANNEL_H
#define MGPU_DEVICE_MPI_MPICHANNEL_H

// MPI, by a plug-in that is opened at run time. Waiting is MPI_Test with naps
// in between, as MPI's own waits take a whole core.

#include "device/api/Channel.h"

#include <memory>
#include <string>

namespace mgpu::device {

/// "openmpi" or "mpich", of which this process is a rank as its environment
/// says; "" where it was started by neither.
std::string mpiOfEnvironment();

/// Opens the plug-in of "openmpi" or "mpich", and starts MPI unless it runs;
/// where that takes longer than `deadline` (0: none), the process ends.
/// The ranks are those of `communicator`, a pointer to an
/// MPI_Comm; null is MPI_COMM_WORLD. A process has one such channel at a time.
/// The plug-in is the file that MGPU_MPI_PLUGIN names, else it is looked for
/// beside this program or library and in lib/mgpu of where it is installed.
/// Errors: Absent where the plug-in, or its MPI, is not there or does not
/// start; Usage where another channel is open.
Result<std::unique_ptr<Channel>> joinByMpi(const std::string &name,
                                           std::chrono::milliseconds deadline,
                                           const void *communicator = nullptr);

} // namespace mgpu::device

#endif // MGPU_DEVICE_MPI_MPICHANNEL_H
