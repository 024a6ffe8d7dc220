// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_TCP_TCPCHANNEL_H
#define MGPU_DEVICE_TCP_TCPCHANNEL_H

// A connection between every two ranks, which begins with a handshake
// (Handshake.h). Nothing after it is encrypted.

#include "device/api/Channel.h"
#include "device/tcp/TcpSocket.h"
#include "support/Bytes.h"

#include <memory>

namespace mgpu::device {

/// `sockets` are by rank, connected; one's own is not open.
std::unique_ptr<Channel> makeTcpChannel(uint32_t rank,
                                        std::vector<TcpSocket> sockets);

/// Where ranks meet.
struct TcpPlace {
  uint32_t rank = 0, count = 1;
  std::string address; ///< of rank 0: a name or a number
  uint16_t port = 0;   ///< of rank 0
  Bytes secret{};      ///< of all ranks (Handshake.h); empty: none
};

/// The place that MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE say, as
/// torchrun and its like set them; what is missing of these Slurm's variables
/// say: SLURM_PROCID, SLURM_NTASKS, the first node of the step's, and a port of
/// the job's. MGPU_PORT wins over both. It is the port after MASTER_PORT where
/// torchrun says that it listens there itself. The address is 127.0.0.1 where
/// nothing says it, or a step has one node. The secret is that of
/// MGPU_SECRET_FILE. None where no variable is set. Usage where one is missing
/// or is no number; errors of secretOfEnvironment().
Result<std::optional<TcpPlace>> tcpPlaceOfEnvironment();

/// Meets the others: rank 0 listens at its address alone and tells each where
/// the others are; they listen at that end of their connection to rank 0 which
/// is theirs. Who does not prove that it has the secret is not heard. Returns
/// when every two are connected. Errors: Invalid where an address reaches other
/// machines and there is no secret; Absent that names a rank which did not come
/// before `deadline` (0: an hour), where the ranks differ about their number or
/// two say they are the same; all that came have the same error.
Result<std::unique_ptr<Channel>> joinByTcp(const TcpPlace &place,
                                           std::chrono::milliseconds deadline);

} // namespace mgpu::device

#endif // MGPU_DEVICE_TCP_TCPCHANNEL_H
