// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pages of a damaged database: whatever they hold, reading them ends.
#include "db/PageScan.h"
#include "db/TuningProblem.h"

#include <cstdlib>

using namespace mgpu;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto bytes = std::as_bytes(std::span(data, size));
  auto visit = [](const db::Record &record) {
    for (const db::Value &value : record.columns)
      if (auto *text = std::get_if<std::string>(&value)) {
        // What is taken for a problem is one, in its canonical form.
        auto problem = db::TuningProblem::parse(*text);
        if (problem && problem->text() != *text)
          std::abort();
        auto pairs = db::parsePairs(*text);
        if (pairs && db::pairsText(*pairs) != *text)
          std::abort();
      }
  };
  db::scanPages(bytes, {}, visit);
  // The same bytes as a log over an empty file.
  db::scanPages({}, bytes, visit);
  return 0;
}
