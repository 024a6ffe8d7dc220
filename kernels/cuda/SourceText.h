// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_SOURCETEXT_H
#define MGPU_KERNELS_CUDA_SOURCETEXT_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

#include <string>

namespace mgpu::kernels::cuda {

/// The name the source gave the value, empty where none is known.
llvm::StringRef sourceName(mlir::Location location);

/// Lines of C++, indented, each with the line of the source it comes from.
class Text {
public:
  /// Whose source the next lines are; #line is written where the running
  /// count of lines is not it already.
  void at(mlir::Location location);
  /// The next lines are this text's own.
  void atNowhere() { wanted = {}; }
  void line(const llvm::Twine &text);
  void raw(llvm::StringRef lines); ///< whole lines, not indented
  /// Puts `head` before the lines written since `begin`, a position in `text`:
  /// before one line, or before a block of several.
  void headLines(size_t begin, llvm::StringRef head);
  void open(const llvm::Twine &text) {
    line(text + " {");
    ++depth;
  }
  void close(const llvm::Twine &text = "") {
    --depth;
    line("}" + text);
  }
  unsigned depth = 0;
  std::string text;

private:
  struct Place {
    std::string file;
    unsigned line = 0;
    bool operator==(const Place &) const = default;
  };
  Place wanted; ///< line 0: none
  Place now;    ///< place of the next line, as the compiler counts
};

/// A text whose lines that stand for "#line N FILE" of itself say so.
std::string withOwnLines(const std::string &text, const std::string &file);
/// Such a line.
inline constexpr llvm::StringRef ownLine = "#line own\n";

/// Hands out identifiers that are not in use and not words of C++ or CUDA.
class Names {
public:
  /// `wish`, made an identifier and unique.
  std::string fresh(llvm::StringRef wish);
  void reserve(llvm::StringRef name) { used.insert(name); }

private:
  llvm::StringSet<> used;
  llvm::StringMap<unsigned> next; ///< the last number given to a name
};

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_CUDA_SOURCETEXT_H
