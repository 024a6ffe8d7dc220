// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_STABLEHLO_STABLEHLOTYPES_TD
#define MGPU_DIALECT_STABLEHLO_STABLEHLOTYPES_TD

include "mlir/Dialect/Quant/IR/QuantBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Stablehlo_Dialect : Dialect {
  let name = "stablehlo";
  let cppNamespace = "::mgpu::stablehlo";
  let summary = "What JAX, PyTorch/XLA and others export";
  let description = [{
    StableHLO programs are functions over tensors. This is the part of the
    dialect that exported programs use. Both spellings are read, the one of
    `as_text()` and the generic one, and the first is printed.

    The meaning of each operation is that of the
    [specification](https://openxla.org/stablehlo/spec).

    Example:
    ```mlir
    func.func public @main(%x: tensor<8x16xf32>, %w: tensor<16x4xf32>)
        -> tensor<8x4xf32> {
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
          : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
      %1 = stablehlo.tanh %0 : tensor<8x4xf32>
      return %1 : tensor<8x4xf32>
    }
    ```

    Where a syntax below says `custom<SameType>` or `custom<PairType>`, it is
    one type where all are equal, and a function type otherwise.
  }];
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
    mlir::Attribute parseAttribute(mlir::DialectAsmParser &parser,
                                   mlir::Type type) const override;
    void printAttribute(mlir::Attribute attribute,
                        mlir::DialectAsmPrinter &printer) const override;
  }];
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def Stablehlo_TokenType : TypeDef<Stablehlo_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "An order between operations with side effects";
}

def Stablehlo_FutureType : TypeDef<Stablehlo_Dialect, "Future"> {
  let mnemonic = "future";
  let summary = "The results of an asynchronous operation";
  let parameters = (ins ArrayRefParameter<"::mlir::Type">:$types);
  let assemblyFormat = "`<` $types `>`";
}

def Stablehlo_Pred : TypeAlias<I1, "i1">;
def Stablehlo_SInt : SignlessIntOfWidths<[2, 4, 8, 16, 32, 64]>;
def Stablehlo_UInt : UnsignedIntOfWidths<[2, 4, 8, 16, 32, 64]>;
def Stablehlo_IntType : AnyTypeOf<[Stablehlo_SInt, Stablehlo_UInt], "integer">;
def Stablehlo_FloatType : AnyTypeOf<[
    F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3, F8E4M3FN, F8E4M3FNUZ,
    F8E4M3B11FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, F16, F32, F64, BF16],
    "float">;
def Stablehlo_ComplexType
    : AnyTypeOf<[Complex<F32>, Complex<F64>], "complex number">;
def Stablehlo_QuantType : AnyTypeOf<[quant_QuantizedType], "quantized value">;

class Stablehlo_Tensor<list<Type> elements>
    : RankedTensorOf<elements>;

def Stablehlo_AnyTensor : Stablehlo_Tensor<[
    Stablehlo_Pred, Stablehlo_IntType, Stablehlo_FloatType,
    Stablehlo_ComplexType, Stablehlo_QuantType]>;
def Stablehlo_PredTensor : Stablehlo_Tensor<[Stablehlo_Pred]>;
def Stablehlo_IntTensor : Stablehlo_Tensor<[Stablehlo_IntType]>;
def Stablehlo_PredOrIntTensor
    : Stablehlo_Tensor<[Stablehlo_Pred, Stablehlo_IntType]>;
def Stablehlo_FloatTensor
    : Stablehlo_Tensor<[Stablehlo_FloatType, Stablehlo_QuantType]>;
def Stablehlo_FloatOrComplexTensor : Stablehlo_Tensor<[
    Stablehlo_FloatType, Stablehlo_ComplexType, Stablehlo_QuantType]>;
def Stablehlo_NumberTensor : Stablehlo_Tensor<[
    Stablehlo_IntType, Stablehlo_FloatType, Stablehlo_ComplexType,
    Stablehlo_QuantType]>;
def Stablehlo_RealTensor : Stablehlo_Tensor<[
    Stablehlo_IntType, Stablehlo_FloatType, Stablehlo_QuantType]>;
def Stablehlo_SignedTensor : Stablehlo_Tensor<[
    Stablehlo_SInt, Stablehlo_FloatType, Stablehlo_ComplexType,
    Stablehlo_QuantType]>;
def Stablehlo_ComplexTensor : Stablehlo_Tensor<[Stablehlo_ComplexType]>;
// Sizes of dynamic operations: a tensor of integers or indices.
def Stablehlo_SizeTensor
    : Stablehlo_Tensor<[Stablehlo_IntType, Index]>;
class Stablehlo_Handle<TypeDef type, string what>
    : Type<type.predicate, what, type.cppType>,
      BuildableType<"$_builder.getType<" # type.cppType # ">()">;
def Stablehlo_Token : Stablehlo_Handle<Stablehlo_TokenType, "token">;
def Stablehlo_Future : Type<Stablehlo_FutureType.predicate, "future",
                            Stablehlo_FutureType.cppType>;
def Stablehlo_TensorOrToken
    : AnyTypeOf<[Stablehlo_AnyTensor, Stablehlo_Token, NestedTupleOf<[
          Stablehlo_AnyTensor, Stablehlo_Token]>]>;

#endif // MGPU_DIALECT_STABLEHLO_STABLEHLOTYPES_TD
