// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/serve/Auditor.h"

namespace mgpu::pipeline::serve {

Result<Auditor::Done>
Auditor::replay(bool isAsked, const std::function<std::string()> &stale,
                const std::function<Result<void>(double &us)> &plain,
                double &us) {
  Done done;
  if (isReference) {
    MGPU_TRY(audit.replayReference(us));
    return done;
  }
  done.isAudited = isAsked || ++since >= options.every;
  if (!done.isAudited) {
    MGPU_TRY(plain(us));
    return done;
  }
  since = 0;
  done.difference = stale();
  done.auditedUs = us;
  MGPU_TRY_ASSIGN(const std::optional<Difference> differs,
                  audit.replay(done.auditedUs));
  const bool isStale = !done.difference.empty(),
             isJudged = differs && differs->isJudged;
  if (differs)
    done.difference += (isStale ? "; " : "") + differs->what;
  done.stops =
      (isStale || isJudged) && options.onDifference == OnDifference::Stop;
  if (isJudged && options.onDifference == OnDifference::FallBack) {
    isReference = true;
    MGPU_TRY(audit.takeReference());
    done.difference += "; the reference is replayed from here on";
  }
  return done;
}

} // namespace mgpu::pipeline::serve
