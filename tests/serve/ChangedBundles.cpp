// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bundles with changed bytes: opening one, as a file and from memory, works or
// says what is wrong, and is never a fault of mgpu's.
// Usage: serve_changed BUNDLE FOLDER COUNT SEED
#include "pipeline/c/mgt.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<char>;
using Draw = std::mt19937_64;

[[noreturn]] void die(uint64_t number, const std::string &what) {
  std::fprintf(stderr, "mutant %llu: %s\n", (unsigned long long)number,
               what.c_str());
  std::exit(1);
}

/// One to eight changed bytes; now and then a cut end, or bytes that are moved.
Bytes mutant(const Bytes &from, Draw &draw) {
  Bytes out = from;
  auto below = [&](size_t bound) { return size_t(draw() % bound); };
  switch (below(16)) {
  case 0:
    out.resize(below(out.size()));
    return out;
  case 1: {
    const size_t count = 1 + below(512), limit = out.size() - count;
    std::memmove(&out[below(limit)], &out[below(limit)], count);
    return out;
  }
  default:
    for (size_t k = 1 + below(8); k > 0; --k) {
      char &byte = out[below(out.size())];
      byte = below(2) ? char(draw()) : char(byte ^ (1 << below(8)));
    }
    return out;
  }
}

mgt_status check(uint64_t number, mgt_status status, mgt_program *program) {
  const std::string said = status == MGT_OK ? "" : mgt_error();
  const bool fits = status == MGT_OK || status == MGT_INVALID ||
                    status == MGT_ABSENT || status == MGT_UNSUPPORTED ||
                    status == MGT_USAGE;
  if (!fits || (status == MGT_OK) != (program != nullptr) ||
      (status != MGT_OK && said.find(' ') == std::string::npos))
    die(number, "status " + std::to_string(status) + ": " + said);
  mgt_close(program);
  return status;
}

int run(const char *path, const std::string &folder, uint64_t count,
        uint64_t seed) {
  std::ifstream file(path, std::ios::binary);
  const Bytes from((std::istreambuf_iterator<char>(file)), {});
  if (from.size() < 4096)
    die(0, "there is no bundle");
  std::map<mgt_status, uint64_t> counts;
  for (uint64_t k = 0; k < count; ++k) {
    Draw draw(seed + k);
    const Bytes bytes = mutant(from, draw);
    mgt_program *program = nullptr;
    mgt_status status = MGT_USAGE;
    if (!bytes.empty()) {
      status = mgt_open_memory(bytes.data(), bytes.size(), "host", nullptr,
                               &program);
      ++counts[check(k, status, program)];
    }
    if (k % 8)
      continue;
    const std::string changed = folder + "/changed.mgpu";
    std::ofstream(changed, std::ios::binary)
        .write(bytes.data(), std::streamsize(bytes.size()));
    program = nullptr;
    const mgt_status ofFile = mgt_open(changed.c_str(), "host", &program);
    if (check(k, ofFile, program) != status && !bytes.empty())
      die(k, "a file gives " + std::to_string(ofFile) + ", memory " +
                 std::to_string(status));
  }
  std::printf("%llu bundles with changed bytes:", (unsigned long long)count);
  for (const auto &[status, each] : counts)
    std::printf(" status %d %llu times", status, (unsigned long long)each);
  std::printf("\n");
  if (counts[MGT_OK] == 0 || counts[MGT_INVALID] == 0)
    die(count, "all are alike");
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  return argc > 4 ? run(argv[1], argv[2], std::strtoull(argv[3], nullptr, 10),
                        std::strtoull(argv[4], nullptr, 10))
                  : 2;
}
