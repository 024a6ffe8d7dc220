// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/api/Rendezvous.h"

#include "support/Escape.h"

#include <fmt/format.h>

namespace mgpu::device {

Result<void> agree(const Facts &facts, Rendezvous &others) {
  Bytes mine;
  for (const auto &[name, value] : facts)
    append(mine, value);
  MGPU_TRY_ASSIGN(const std::vector<Bytes> all, others.exchange(mine));
  for (uint32_t rank = 1; rank < all.size(); ++rank) {
    ByteReader first(all[0]), here(all[rank]);
    for (const auto &fact : facts) {
      const std::string a = first.text(), b = here.text();
      if (a != b)
        return fail(ErrorKind::Absent,
                    fmt::format("rank {} has another {} than rank 0: '{}', and "
                                "not '{}'; give all ranks the same",
                                rank, fact.first, escaped(b), escaped(a)));
    }
  }
  return {};
}

} // namespace mgpu::device
