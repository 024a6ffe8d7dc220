// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/report/Assets.h"

// The assembler reads the files as they are: a megabyte as a string literal
// costs a compiler seconds. CMakeLists.txt names them, and rebuilds this file
// when they change.
#define MGPU_EMBED(SYMBOL, PATH)                                               \
  asm(".pushsection .rodata\n.global " #SYMBOL "\n" #SYMBOL                    \
      ":\n.incbin \"" PATH "\"\n.global " #SYMBOL "_end\n" #SYMBOL             \
      "_end:\n.byte 0\n.popsection\n");                                        \
  extern "C" const char SYMBOL[], SYMBOL##_end[]

MGPU_EMBED(mgpu_report_echarts, MGPU_REPORT_ECHARTS);
MGPU_EMBED(mgpu_report_script, MGPU_REPORT_PAGE "/report.js");
MGPU_EMBED(mgpu_report_style, MGPU_REPORT_PAGE "/report.css");

namespace mgpu::tuner {

static std::string_view between(const char *begin, const char *end) {
  return {begin, size_t(end - begin)};
}

std::string_view echartsScript() {
  return between(mgpu_report_echarts, mgpu_report_echarts_end);
}

std::string_view pageScript() {
  return between(mgpu_report_script, mgpu_report_script_end);
}

std::string_view pageStyle() {
  return between(mgpu_report_style, mgpu_report_style_end);
}

} // namespace mgpu::tuner
