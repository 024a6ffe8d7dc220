// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/c/MeetingOf.h"

#include "device/tcp/Handshake.h"
#include "pipeline/c/Calls.h"

namespace mgpu::pipeline {

Result<Meeting> meetingOf(const char *call, const mgt_ranks *given) {
  MGPU_TRY_ASSIGN(const mgt_ranks ranks, sized(given, call, "mgt_ranks"));
  Meeting out;
  if (ranks.how)
    out.how = ranks.how;
  if (out.how != "auto" && out.how != "tcp" && out.how != "openmpi" &&
      out.how != "mpich")
    return fail(ErrorKind::Usage,
                fmt::format("{}: processes do not meet by '{}'; use "
                            "openmpi, mpich, tcp, or NULL",
                            call, out.how));
  if (ranks.deadline_ms != 0)
    out.deadline = std::chrono::milliseconds(ranks.deadline_ms);
  out.communicator = ranks.communicator;
  if (ranks.count == 0)
    return out;
  if (out.how != "tcp" || !ranks.address || ranks.rank >= ranks.count ||
      ranks.port == 0 || ranks.port > 65535)
    return fail(ErrorKind::Usage,
                fmt::format("{}: rank {} of {} at port {}: by tcp, "
                            "a rank below the count, an address and a port "
                            "from 1 to 65535 are needed",
                            call, ranks.rank, ranks.count, ranks.port));
  out.place = device::TcpPlace{ranks.rank, ranks.count, ranks.address,
                               uint16_t(ranks.port)};
  MGPU_TRY_ASSIGN(out.place->secret, device::secretOfEnvironment());
  return out;
}

} // namespace mgpu::pipeline
