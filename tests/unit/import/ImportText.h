// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_IMPORT_IMPORTTEXT_H
#define MGPU_TESTS_UNIT_IMPORT_IMPORTTEXT_H

// Program text in, DAG and diagnostics out.

#include "planner/import/BuildDag.h"

#include <optional>
#include <string>
#include <vector>

namespace mgpu::planner {

struct Imported {
  std::optional<ImportedProgram> program;
  std::optional<Error> error;
  std::vector<std::string> errors, warnings; ///< without places

  const Dag &dag() const { return program->dag; }
  /// All diagnostics, for messages of failed tests.
  std::string text() const;
  size_t countWarnings(std::string_view part) const;
  size_t countErrors(std::string_view part) const;
};

/// All programs share one context: dialects are loaded once.
Imported importText(const std::string &text, const ImportOptions &options = {});

/// `body` with the parts every test needs before it: two devices %d0 and %d1,
/// the %host, streams %s0 and %t0 of device 0 and %s1 of device 1, a
/// communicator %comm of both, memref<64xf32> buffers %a, %a2, %a3 on device 0
/// and %b, %b2, %b3 on device 1, constants %c0, %c1, %c2, %c8, %c32, %c64 and
/// %one. Its entry takes `arguments`.
std::string program(const std::string &body,
                    const std::string &arguments = "%x: memref<64xf32>");

/// A launch of 64 threads of one block on `device` ("%d0") that runs `body`
/// with %i the thread's id; `stream` may be empty.
std::string launch(const std::string &device, const std::string &stream,
                   const std::string &body);

/// The nodes that run a kernel, in order.
std::vector<const DagNode *> kernelNodes(const Dag &dag);

} // namespace mgpu::planner

#endif // MGPU_TESTS_UNIT_IMPORT_IMPORTTEXT_H
