// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_ESCAPE_H
#define MGPU_SUPPORT_ESCAPE_H

#include <cstddef>
#include <string>
#include <string_view>

namespace mgpu {

/// Text that another process sent, fit to be printed: a terminal obeys some
/// bytes, and a line's end would begin a line in this process's name. Each byte
/// of a control character, of one that turns the direction of writing, and of
/// what is no UTF-8 is \xNN; a backslash stays. A text longer than `most` bytes
/// is cut, and ends with "...".
std::string escaped(std::string_view text, size_t most = 4096);

} // namespace mgpu

#endif // MGPU_SUPPORT_ESCAPE_H
