// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_KERNELS_CORPUSMAKER_H
#define MGPU_TESTS_UNIT_KERNELS_CORPUSMAKER_H

// How the kernels of Corpus.h are made. One file has the operations, one what
// is between them: memory, control, vectors; one what threads do together.
#include "Corpus.h"

namespace mgpu::kernels::corpus {

using Types = std::vector<std::string>;

inline const Types integers{"i8", "i16", "i32", "i64"},
    floats{"f16", "bf16", "f32", "f64"}, storage{"f8E4M3FN", "f8E5M2"};

inline bool isFloat(const std::string &type) {
  return type.find('f') != std::string::npos;
}

inline unsigned bitsOf(const std::string &type) {
  if (type == "index")
    return 64;
  if (type == "bf16")
    return 16;
  if (type.starts_with("f8"))
    return 8;
  return unsigned(std::stoul(type.substr(1)));
}

/// `operands` are loaded into %a, %b, ...; `body` leaves %r, of `result`, for
/// $out[$i], of type $o.
struct Operation {
  std::string family; ///< those of one family and its operands share a kernel
  Types operands;
  std::string result, body;
  std::string functions = {}; ///< device functions it calls, named for it
};

/// Collects the operations.
class Maker {
public:
  std::vector<Operation> operations;

  void add(const std::string &family, const Types &operands,
           const std::string &result, const std::string &body,
           const std::string &functions = "") {
    operations.push_back({family, operands, result, body, functions});
  }
  /// `op` of so many operands of one type, and of that type; and of vectors of
  /// that type, of which lane 1 has the operands in their order.
  void same(const std::string &family, const std::string &op, size_t count,
            const std::string &type);
  void convert(const std::string &op, const std::string &from,
               const std::string &to);

  void makeIntegers(const std::string &type);
  void makeIndices();
  void makeFloats(const std::string &type);
  void makeBits();
  void makeConversions();
  void makeAtomics();
  void makeVectors();
  /// Memory and control flow around values of `type`.
  void makeStructure(const std::string &type);
};

/// What threads of a block do together, for each type.
std::vector<CorpusKernel> together();

} // namespace mgpu::kernels::corpus

#endif // MGPU_TESTS_UNIT_KERNELS_CORPUSMAKER_H
