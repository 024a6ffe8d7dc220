// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TOOLS_OPTIONS_OPTIONCHECKS_H
#define MGPU_TOOLS_OPTIONS_OPTIONCHECKS_H

// Checks values of options, and says what is wrong with a command line.

#include <CLI/CLI.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace mgpu::tools {

/// Adds a check that the value is a decimal whole number of these; the
/// library's own conversion would wrap -1 and take 010 for 8.
void takeWhole(CLI::Option *option, uint64_t least = 0,
               uint64_t most = std::numeric_limits<uint64_t>::max());
/// A number of [least, most].
void takeNumber(CLI::Option *option, double least, double most);
/// One of `words`.
void takeWord(CLI::Option *option, const std::vector<std::string> &words);

/// The error as a sentence, and where the options are listed.
std::string usageError(const CLI::App &app, const CLI::ParseError &error,
                       int argc, char **argv);

} // namespace mgpu::tools

#endif // MGPU_TOOLS_OPTIONS_OPTIONCHECKS_H
