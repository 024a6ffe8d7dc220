// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_DEVICE_RENDEZVOUSBODY_H
#define MGPU_TESTS_UNIT_DEVICE_RENDEZVOUSBODY_H

// What every Rendezvous does, whatever it goes over. Each function is called by
// all ranks at once, each with its own.

#include "device/api/MessageRendezvous.h"

#include <gtest/gtest.h>

namespace mgpu::device {

/// All get what each gave, round after round.
inline void checkExchange(Rendezvous &others, size_t scale) {
  const uint32_t rank = others.rank(), count = others.count();
  ASSERT_LT(rank, count);
  for (uint32_t round = 0; round < 50; ++round) {
    auto given = [&](uint32_t of) { // of other lengths, and none at all
      return Bytes(of * (round % 4) * scale, std::byte(of + round));
    };
    auto all = others.exchange(given(rank));
    ASSERT_TRUE(all) << all.error().message;
    ASSERT_EQ(all->size(), count);
    for (uint32_t of = 0; of < count; ++of)
      EXPECT_EQ((*all)[of], given(of)) << "round " << round;
  }
}

inline void checkLargest(Rendezvous &others) {
  for (uint32_t round = 0; round < 50; ++round) {
    const uint32_t winner = round % others.count();
    auto most =
        others.largest(others.rank() == winner ? 7.5 + round : -1.0 * round);
    ASSERT_TRUE(most) << most.error().message;
    EXPECT_EQ(*most, 7.5 + round);
    ASSERT_TRUE(others.meet());
    ASSERT_TRUE(others.watch());
  }
}

/// Nobody waits for a rank that gave up.
inline void checkAbort(Rendezvous &others) {
  if (others.rank() == 0)
    return others.abort("of its own accord");
  const auto met = others.meet();
  ASSERT_FALSE(met);
  EXPECT_EQ(met.error().cause, ErrorCause::OtherRank);
  EXPECT_FALSE(others.watch());
  EXPECT_FALSE(others.exchange({}));
}

/// The last rank does not come, and is named by all others, within a deadline
/// that is short.
inline void checkLate(Rendezvous &others) {
  const uint32_t last = others.count() - 1;
  if (others.rank() == last)
    return;
  const auto met = others.meet();
  ASSERT_FALSE(met);
  EXPECT_NE(met.error().message.find("rank " + std::to_string(last)),
            std::string::npos)
      << met.error().message;
}

} // namespace mgpu::device

#endif // MGPU_TESTS_UNIT_DEVICE_RENDEZVOUSBODY_H
