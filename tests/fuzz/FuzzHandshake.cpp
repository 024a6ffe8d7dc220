// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any bytes, in any pieces: a host takes no more than it needs and welcomes
// nobody, as the secret is not among them. The first byte is the seed of the
// pieces' lengths.
#include "device/tcp/Handshake.h"
#include "support/Random.h"

#include <algorithm>
#include <cstdlib>

using namespace mgpu;
using device::Admission;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const device::Membership here{0, {}, Bytes(32, std::byte(42))};
  if (size == 0)
    return 0;
  Random random(data[0]);
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  Admission admission(here);
  for (size_t at = 0; at < bytes.size();) {
    const std::span<std::byte> room = admission.room();
    if (room.empty())
      abort();
    const size_t count = std::min(
        {size_t(random.below(99) + 1), bytes.size() - at, room.size()});
    std::copy_n(bytes.begin() + ptrdiff_t(at), count, room.begin());
    at += count;
    const Admission::Step step = admission.took(count);
    if (step == Admission::Step::Welcome)
      abort();
    if (step == Admission::Step::Refuse)
      break;
  }
  return 0;
}
