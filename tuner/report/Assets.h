// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_REPORT_ASSETS_H
#define MGPU_TUNER_REPORT_ASSETS_H

// The parts of the page beside its data, built into the program.

#include <string_view>

namespace mgpu::tuner {

std::string_view echartsScript(); ///< third_party/echarts
std::string_view pageScript();    ///< page/report.js
std::string_view pageStyle();     ///< page/report.css

} // namespace mgpu::tuner

#endif // MGPU_TUNER_REPORT_ASSETS_H
