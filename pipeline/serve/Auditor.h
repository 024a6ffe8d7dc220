// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_SERVE_AUDITOR_H
#define MGPU_PIPELINE_SERVE_AUDITOR_H

// Chooses which replays of a program are audited, and does what follows a
// difference.

#include "pipeline/serve/Audit.h"

namespace mgpu::pipeline::serve {

/// Says what follows an audit that finds a difference.
enum class OnDifference : uint8_t { GoOn, Stop, FallBack };

struct AuditOptions {
  uint32_t every = 0; ///< replays, of which one is audited; 0: none is
  OnDifference onDifference = OnDifference::GoOn;
};

class Auditor {
public:
  /// `audit` and what it is of outlive it.
  Auditor(Audit &audit, AuditOptions options)
      : audit(audit), options(options) {}

  /// Tells what became of a replay.
  struct Done {
    bool isAudited = false;
    bool stops = false;          ///< no further one may follow
    std::string difference = {}; ///< "" where there is none
    double auditedUs = 0;        ///< of an audited replay, which is held up
  };
  /// Replays once. It is audited if it is its turn or `isAsked`; `stale` says
  /// what else is wrong then. `plain` does a replay that is not audited. `us`
  /// is its time, and stays as it is where there was an audit.
  Result<Done> replay(bool isAsked, const std::function<std::string()> &stale,
                      const std::function<Result<void>(double &us)> &plain,
                      double &us);
  /// Whether the reference is replayed from here on.
  bool fallsBack() const { return isReference; }

private:
  Audit &audit;
  AuditOptions options;
  uint32_t since = 0; ///< the last audit, in replays
  bool isReference = false;
};

} // namespace mgpu::pipeline::serve

#endif // MGPU_PIPELINE_SERVE_AUDITOR_H
