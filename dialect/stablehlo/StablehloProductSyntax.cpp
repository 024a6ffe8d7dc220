// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How products and convolutions are written.
#include "dialect/stablehlo/StablehloSyntax.h"

#include "mlir/IR/Builders.h"

namespace mgpu::stablehlo {

using namespace mlir;

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// `[DEFAULT, HIGH]`.
static ParseResult parsePrecisions(OpAsmParser &parser, ArrayAttr &precision) {
  SmallVector<Attribute> values;
  auto parseOne = [&] {
    PrecisionAttr value;
    if (parseEnum<Precision>(parser, value, symbolizePrecision))
      return failure();
    values.push_back(value);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return failure();
  precision = parser.getBuilder().getArrayAttr(values);
  return success();
}

ParseResult parsePrecision(OpAsmParser &parser, ArrayAttr &precision) {
  if (failed(parser.parseOptionalComma()))
    return success();
  if (parser.parseKeyword("precision") || parser.parseEqual())
    return failure();
  return parsePrecisions(parser, precision);
}

void printPrecision(OpAsmPrinter &printer, Operation *, ArrayAttr precision) {
  if (!precision)
    return;
  printer << ", precision = [";
  llvm::interleaveComma(precision.getAsRange<PrecisionAttr>(), printer,
                        [&](PrecisionAttr value) {
                          printer << stringifyPrecision(value.getValue());
                        });
  printer << ']';
}

ParseResult parsePrecisionAndAlgorithm(OpAsmParser &parser,
                                       ArrayAttr &precision,
                                       DotAlgorithmAttr &algorithm) {
  while (succeeded(parser.parseOptionalComma())) {
    bool isPrecision = succeeded(parser.parseOptionalKeyword("precision"));
    if ((!isPrecision && parser.parseKeyword("algorithm")) ||
        parser.parseEqual())
      return failure();
    if (isPrecision) {
      if (parsePrecisions(parser, precision))
        return failure();
      continue;
    }
    FailureOr<DotAlgorithmAttr> parsed = DotAlgorithmAttr::parseFields(parser);
    if (failed(parsed))
      return failure();
    algorithm = *parsed;
  }
  return success();
}

void printPrecisionAndAlgorithm(OpAsmPrinter &printer, Operation *op,
                                ArrayAttr precision,
                                DotAlgorithmAttr algorithm) {
  printPrecision(printer, op, precision);
  if (!algorithm)
    return;
  printer << ", algorithm = ";
  algorithm.printFields(printer);
}

/// `= [0, 1] x [0, 2]`.
static ParseResult parseDimPair(OpAsmParser &parser, Dims &lhs, Dims &rhs) {
  return failure(parser.parseEqual() || parseDims(parser, lhs) ||
                 parser.parseKeyword("x") || parseDims(parser, rhs));
}

ParseResult parseDotDimensions(OpAsmParser &parser,
                               DotDimensionNumbersAttr &dims) {
  Dims lhsBatching, rhsBatching, lhsContracting, rhsContracting;
  if (parser.parseComma())
    return failure();
  if (succeeded(parser.parseOptionalKeyword("batching_dims")) &&
      (parseDimPair(parser, lhsBatching, rhsBatching) || parser.parseComma()))
    return failure();
  if (parser.parseKeyword("contracting_dims") ||
      parseDimPair(parser, lhsContracting, rhsContracting))
    return failure();
  dims =
      DotDimensionNumbersAttr::get(parser.getContext(), lhsBatching,
                                   rhsBatching, lhsContracting, rhsContracting);
  return success();
}

void printDotDimensions(OpAsmPrinter &printer, Operation *,
                        DotDimensionNumbersAttr dims) {
  auto print = [&](StringRef name, ArrayRef<int64_t> lhs,
                   ArrayRef<int64_t> rhs) {
    printer << ", " << name << " = ";
    printDims(printer, lhs);
    printer << " x ";
    printDims(printer, rhs);
  };
  if (!dims.getLhsBatchingDimensions().empty() ||
      !dims.getRhsBatchingDimensions().empty())
    print("batching_dims", dims.getLhsBatchingDimensions(),
          dims.getRhsBatchingDimensions());
  print("contracting_dims", dims.getLhsContractingDimensions(),
        dims.getRhsContractingDimensions());
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

/// `[b, 0, 1, f]`, where `first` and `second` are the letters.
static ParseResult parseConvSide(AsmParser &parser, StringRef first,
                                 StringRef second, int64_t &firstDim,
                                 int64_t &secondDim, Dims &spatial) {
  llvm::SMLoc at = parser.getCurrentLocation();
  int64_t dim = 0;
  firstDim = secondDim = -1;
  SmallVector<std::pair<int64_t, int64_t>> numbered;
  auto parseOne = [&]() -> ParseResult {
    int64_t number = 0;
    OptionalParseResult parsed = parser.parseOptionalInteger(number);
    if (parsed.has_value()) {
      if (failed(*parsed))
        return failure();
      numbered.emplace_back(number, dim++);
      return success();
    }
    if (succeeded(parser.parseOptionalQuestion())) {
      ++dim;
      return success();
    }
    StringRef letter;
    llvm::SMLoc here = parser.getCurrentLocation();
    if (parser.parseKeyword(&letter))
      return failure();
    int64_t &which = letter == first ? firstDim : secondDim;
    if ((letter != first && letter != second) || which != -1)
      return parser.emitError(here)
             << "expected '" << first << "' and '" << second << "', once each";
    which = dim++;
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return failure();
  if (firstDim == -1 || secondDim == -1)
    return parser.emitError(at)
           << "expected '" << first << "' and '" << second << "'";
  llvm::sort(numbered);
  for (auto [index, each] : llvm::enumerate(numbered)) {
    if (each.first != int64_t(index))
      return parser.emitError(at)
             << "expected the spatial dimensions 0 to " << numbered.size() - 1;
    spatial.push_back(each.second);
  }
  return success();
}

ParseResult parseConvDimensions(AsmParser &parser,
                                ConvDimensionNumbersAttr &dims) {
  int64_t batch, feature, kernelIn, kernelOut, outBatch, outFeature;
  Dims input, kernel, output;
  if (parseConvSide(parser, "b", "f", batch, feature, input) ||
      parser.parseKeyword("x") ||
      parseConvSide(parser, "i", "o", kernelIn, kernelOut, kernel) ||
      parser.parseArrow() ||
      parseConvSide(parser, "b", "f", outBatch, outFeature, output))
    return failure();
  dims = ConvDimensionNumbersAttr::get(parser.getContext(), batch, feature,
                                       input, kernelIn, kernelOut, kernel,
                                       outBatch, outFeature, output);
  return success();
}

static void printConvSide(AsmPrinter &printer, StringRef first,
                          StringRef second, int64_t firstDim, int64_t secondDim,
                          ArrayRef<int64_t> spatial) {
  printer << '[';
  llvm::interleaveComma(llvm::seq<int64_t>(0, spatial.size() + 2), printer,
                        [&](int64_t dim) {
                          const auto *found = llvm::find(spatial, dim);
                          if (dim == firstDim)
                            printer << first;
                          else if (dim == secondDim)
                            printer << second;
                          else if (found != spatial.end())
                            printer << found - spatial.begin();
                          else
                            printer << '?';
                        });
  printer << ']';
}

void printConvDimensions(AsmPrinter &printer, ConvDimensionNumbersAttr dims) {
  printConvSide(printer, "b", "f", dims.getInputBatchDimension(),
                dims.getInputFeatureDimension(),
                dims.getInputSpatialDimensions());
  printer << 'x';
  printConvSide(printer, "i", "o", dims.getKernelInputFeatureDimension(),
                dims.getKernelOutputFeatureDimension(),
                dims.getKernelSpatialDimensions());
  printer << "->";
  printConvSide(printer, "b", "f", dims.getOutputBatchDimension(),
                dims.getOutputFeatureDimension(),
                dims.getOutputSpatialDimensions());
}

/// `[[0, 1], [2, 3]]`.
static ParseResult parsePadding(OpAsmParser &parser,
                                DenseIntElementsAttr &padding) {
  Dims values;
  llvm::SMLoc at = parser.getCurrentLocation();
  auto parsePair = [&] { return parseDims(parser, values); };
  int64_t pairs = 0;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        ++pairs;
        return parsePair();
      }))
    return failure();
  if (int64_t(values.size()) != 2 * pairs)
    return parser.emitError(at, "expected pairs of low and high padding");
  padding = DenseIntElementsAttr::get(
      RankedTensorType::get({pairs, 2}, parser.getBuilder().getI64Type()),
      ArrayRef(values));
  return success();
}

/// `[true, false]`, or 1 and 0.
static ParseResult parseFlags(OpAsmParser &parser, DenseBoolArrayAttr &flags) {
  SmallVector<bool> values;
  auto parseOne = [&] {
    if (succeeded(parser.parseOptionalKeyword("true")))
      values.push_back(true);
    else if (succeeded(parser.parseOptionalKeyword("false")))
      values.push_back(false);
    else if (int64_t value = 0; succeeded(parser.parseInteger(value)))
      values.push_back(value != 0);
    else
      return failure();
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return failure();
  flags = parser.getBuilder().getDenseBoolArrayAttr(values);
  return success();
}

ParseResult parseWindow(OpAsmParser &parser, DenseI64ArrayAttr &strides,
                        DenseIntElementsAttr &padding,
                        DenseI64ArrayAttr &lhsDilation,
                        DenseI64ArrayAttr &rhsDilation,
                        DenseBoolArrayAttr &reversal) {
  auto parseList = [&](DenseI64ArrayAttr &list) -> ParseResult {
    Dims values;
    if (parseDims(parser, values))
      return failure();
    list = parser.getBuilder().getDenseI64ArrayAttr(values);
    return success();
  };
  StringRef name;
  while (succeeded(parser.parseOptionalKeyword(
      &name, {"stride", "pad", "lhs_dilate", "rhs_dilate", "reverse"}))) {
    if (parser.parseEqual() ||
        (name == "stride"       ? parseList(strides)
         : name == "pad"        ? parsePadding(parser, padding)
         : name == "lhs_dilate" ? parseList(lhsDilation)
         : name == "rhs_dilate" ? parseList(rhsDilation)
                                : parseFlags(parser, reversal)))
      return failure();
    if (failed(parser.parseOptionalComma()))
      break;
  }
  return success();
}

void printWindow(OpAsmPrinter &printer, Operation *, DenseI64ArrayAttr strides,
                 DenseIntElementsAttr padding, DenseI64ArrayAttr lhsDilation,
                 DenseI64ArrayAttr rhsDilation, DenseBoolArrayAttr reversal) {
  StringRef separator = "";
  auto start = [&](StringRef name) {
    printer << separator << name << " = ";
    separator = ", ";
  };
  auto printList = [&](StringRef name, DenseI64ArrayAttr list) {
    if (!list)
      return;
    start(name);
    printDims(printer, list);
  };
  printList("stride", strides);
  if (padding) {
    start("pad");
    Dims values = llvm::to_vector(padding.getValues<int64_t>());
    printer << '[';
    llvm::interleaveComma(
        llvm::seq<size_t>(0, values.size() / 2), printer, [&](size_t pair) {
          printDims(printer, ArrayRef(values).slice(2 * pair, 2));
        });
    printer << ']';
  }
  printList("lhs_dilate", lhsDilation);
  printList("rhs_dilate", rhsDilation);
  if (!reversal)
    return;
  start("reverse");
  printer << '[';
  llvm::interleaveComma(reversal.asArrayRef(), printer, [&](bool flag) {
    printer << (flag ? "true" : "false");
  });
  printer << ']';
}

} // namespace mgpu::stablehlo
