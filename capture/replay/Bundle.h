// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_CAPTURE_REPLAY_BUNDLE_H
#define MGPU_CAPTURE_REPLAY_BUNDLE_H

// A program in a file of its own: DAG, plan, and its kernels compiled, so that
// a machine without the compiler runs it (docs/bundles.md).

#include "db/BundleStore.h"
#include "kernels/compile/CudaText.h"
#include "planner/dag/Program.h"
#include "planner/plan/Plan.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mgpu::capture {

/// One kernel in all forms it was compiled to.
struct KernelForms {
  std::map<std::string, std::vector<std::byte>> host; ///< by CPU level
  /// The other variants of it for the host that are here for each level:
  /// all of the space but its defaults, which `host` has.
  std::optional<kernels::KernelSpace> hostSpace;
  std::map<std::string, std::map<kernels::KernelConfig, std::vector<std::byte>>>
      alternatives;
  std::optional<kernels::CudaText> cuda;
  std::map<std::string, std::vector<std::byte>> cubins; ///< by "sm_90"
};

/// Cubins of the CUDA target's own kernels, by architecture and the SHA-256 of
/// their text.
using OwnCubins =
    std::map<std::pair<std::string, std::string>, std::vector<std::byte>>;
/// Where OwnCubins has the cubin of `text` for `arch`.
std::pair<std::string, std::string> ownKey(std::string arch,
                                           std::string_view text);

struct BundleContents {
  db::ProgramRecord origin; ///< its `text` is left empty
  planner::Program program;
  planner::Plan plan;               ///< for the host
  uint32_t threads = 0;             ///< that replay it; 0: as many as useful
  std::vector<KernelForms> kernels; ///< by KernelId
  OwnCubins own;
};

/// Writes `path` whole or not at all.
Result<void> writeBundle(const std::string &path,
                         const BundleContents &contents);

/// A bundle as read. The file may come from anyone: the program passes
/// Program::check(), plans pass verify(), and all bytes have the hashes they
/// are known by. Kernels are native code and trusted like any other: nothing
/// of them runs before they are loaded into a Driver.
class Bundle {
public:
  /// Errors: as db::BundleStore::open, and Invalid for a program that does not
  /// pass.
  static Result<Bundle> open(const std::string &path);
  /// The bytes of such a file, which outlive it.
  static Result<Bundle> ofBytes(std::span<const std::byte> bytes);

  const std::string &path() const { return name; }
  const planner::Program &program() const { return theProgram; }
  /// The program, of which what remains here is its kernels: plan() and
  /// verify() come before.
  planner::Program takeProgram();
  const db::ProgramRecord &origin() const { return store.record().program; }

  /// SHA-256 of all that it holds, in hex: two that are alike share it.
  std::string hash() const;

  /// The plan stored for "host". Invalid where it is unsafe.
  Result<planner::Plan> plan() const;
  /// The threads it is to be replayed on, no more than this process may run at
  /// once; 0 where the bundle does not say.
  uint32_t threads() const;

  /// That nothing in it is damaged or unsafe, as far as can be known without
  /// running kernels: the plan, and the bytes of every kernel in every form.
  Result<void> verify();

  /// The host kernels, by KernelId, for the first one of `levels` that every
  /// kernel has, and that level. Absent, with what there is, if there is none.
  struct HostKernels {
    std::string level;
    std::vector<std::vector<std::byte>> objects;
  };
  Result<HostKernels> hostKernels(std::span<const std::string_view> levels);

  /// The variants of each kernel that are here for the host, by KernelId;
  /// none where the bundle has one way alone.
  Result<std::optional<std::vector<kernels::KernelSpace>>> hostSpaces();
  /// A kernel built one of these ways for a level of hostKernels().
  Result<std::vector<std::byte>>
  hostKernel(uint32_t kernel, const std::string &level,
             const kernels::KernelConfig &config);

  /// The CUDA C++ of every kernel, with its space; Absent where a kernel has
  /// none.
  Result<std::vector<kernels::CudaText>> cudaTexts();

  /// The cubins for an architecture, by KernelId; Absent, with the
  /// architectures there are, where a kernel has none.
  Result<std::vector<std::vector<std::byte>>> cubins(std::string_view arch);

  /// The cubins that the bundle has, for any architecture.
  Result<OwnCubins> ownCubins();

  /// The targets that every kernel has an image of `form` for.
  std::vector<std::string> targets(std::string_view form) const;

private:
  Bundle(std::string name, db::BundleStore store)
      : name(std::move(name)), store(std::move(store)) {}
  static Result<Bundle> read(std::string name, db::BundleStore store);
  Result<std::vector<std::vector<std::byte>>> images(std::string_view form,
                                                     std::string_view target);
  /// None where the bundle has no alternatives of the kernel.
  Result<std::optional<kernels::KernelSpace>> hostSpaceOf(uint32_t kernel);
  Result<void> checkSpace(const kernels::KernelSpace &space,
                          const kernels::CudaText &text) const;
  /// That every way of hostSpaces() is there.
  Result<void> checkWays();
  std::string noWay(uint32_t kernel, const std::string &level,
                    const kernels::KernelConfig &config) const;
  const db::ImageRecord *find(uint32_t kernel, std::string_view form,
                              std::string_view target) const;

  std::string name;
  db::BundleStore store;
  planner::Program theProgram;
};

} // namespace mgpu::capture

#endif // MGPU_CAPTURE_REPLAY_BUNDLE_H
