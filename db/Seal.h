// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_SEAL_H
#define MGPU_DB_SEAL_H

// A row's checksum: what a disk or a stranger changed is not taken for data.

#include "support/Sha256.h"

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace mgpu::db {

/// The first 60 bits of the SHA-256 of the columns added, in order. It finds
/// damage; it does not prove who wrote the row.
class Seal {
public:
  explicit Seal(std::string_view table) { hash.addField(table); }
  Seal &add(std::string_view text) {
    hash.addField(text);
    return *this;
  }
  Seal &add(int64_t number) {
    hash.addField({reinterpret_cast<const char *>(&number), sizeof number});
    return *this;
  }
  Seal &add(double number) { return add(std::bit_cast<int64_t>(number)); }
  int64_t value() {
    return int64_t(std::stoull(hash.hex().substr(0, 15), nullptr, 16));
  }

private:
  Sha256 hash;
};

} // namespace mgpu::db

#endif // MGPU_DB_SEAL_H
