// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/MatrixElements.h"

namespace mgpu::kernels::ptx {

double elementOf(Scalar type, uint64_t bits) {
  switch (type) {
  case Scalar::F16:
    return toFloat(Half{uint16_t(bits)});
  case Scalar::BF16:
    return toFloat(Bfloat{uint16_t(bits)});
  case Scalar::TF32: // the low 13 bits are not read
    return std::bit_cast<float>(uint32_t(bits) & 0xffffe000);
  case Scalar::F64:
    return std::bit_cast<double>(bits);
  case Scalar::E4M3x2:
    return decodeFloat(bits & 255, e4m3Format);
  case Scalar::E5M2x2:
    return decodeFloat(bits & 255, e5m2Format);
  case Scalar::S8:
    return int8_t(bits);
  case Scalar::U8:
    return uint8_t(bits);
  case Scalar::S32:
    return int32_t(bits);
  default:
    return std::bit_cast<float>(uint32_t(bits));
  }
}
uint32_t bitsOfElement(Scalar type) {
  return type == Scalar::E4M3x2 || type == Scalar::E5M2x2 ? 8
                                                          : bytesOf(type) * 8;
}
uint32_t registerBits(Scalar type) { return type == Scalar::F64 ? 64 : 32; }
uint32_t perRegister(Scalar type) {
  return registerBits(type) / bitsOfElement(type);
}

uint64_t elementIn(const Warp &warp, const uint32_t *places, Scalar type,
                   uint32_t lane, uint32_t at) {
  const uint32_t each = perRegister(type), bits = bitsOfElement(type);
  const uint64_t cell =
      warp.value(places[at / each], lane, registerBits(type) == 64);
  return bits == 64 ? cell
                    : cell >> (at % each * bits) & ((uint64_t(1) << bits) - 1);
}

uint64_t resultOf(Scalar type, double value) {
  switch (type) {
  case Scalar::F64:
    return std::bit_cast<uint64_t>(value);
  case Scalar::S32: // wraps around
    return uint32_t(int64_t(value));
  case Scalar::F16:
    return encode(value, halfFormat, Round::Nearest);
  default:
    return std::isnan(value) ? 0x7fffffff
                             : std::bit_cast<uint32_t>(float(value));
  }
}

bool takeTypes(Decoder &d, std::initializer_list<Scalar *> into) {
  std::string_view rest = d.statement->opcode;
  size_t count = 0;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find('.'));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const auto type = word == "e4m3"   ? std::optional(Scalar::E4M3x2)
                      : word == "e5m2" ? std::optional(Scalar::E5M2x2)
                                       : scalarNamed(word);
    if (type && count < into.size()) {
      *into.begin()[count++] = *type;
      d.has(word);
    }
  }
  return count == into.size();
}

} // namespace mgpu::kernels::ptx
