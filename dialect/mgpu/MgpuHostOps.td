// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Included by MgpuOps.td, which has the base classes.

def Mgpu_OutputKind : I32EnumAttr<"OutputKind",
    "What the host does with a value once it has run the program", [
      I32EnumAttrCase<"Text", 0, "text">,
      I32EnumAttrCase<"Memref", 1, "memref">,
      I32EnumAttrCase<"Value", 2, "value">,
      I32EnumAttrCase<"Check", 3, "check">,
      I32EnumAttrCase<"Shape", 4, "shape">,
      I32EnumAttrCase<"Flops", 5, "flops">,
    ]> {
  let cppNamespace = "::mgpu::ir";
  let genSpecializedAttr = 0;
}
def Mgpu_OutputKindAttr
    : EnumAttr<Mgpu_Dialect, Mgpu_OutputKind, "output_kind"> {
  let assemblyFormat = "`<` $value `>`";
}

def Mgpu_OutputOp : Mgpu_CommandOp<"output"> {
  let summary = "Print, or check, what memory holds here";
  let description = [{
    Keeps what `source` holds at this point of the program. When `run` has
    fetched the results it does, in program order:

    - `text`: prints `text`; there is no source;
    - `memref`: prints `text`, then where the source lies, its sizes and
      strides, and its elements, as MLIR's `printMemref` functions do;
    - `shape`: prints the same without the elements, as `printMemrefShape` does;
    - `value`: prints the elements as `vector.print` does, then `text`; without
      dimensions that is one number;
    - `check`: stops the program with the message `text` if the source, one
      `i1`, is false;
    - `flops`: prints the source, one `f64`, divided by 10^9, and `GFLOPS`, to
      the standard error as `printFlops` does.

    Integers are signed unless `isUnsigned` is there.

    ```mlir
    mgpu.output <memref> "Unranked " %a : memref<4x4xf32>
    ```

    Constraints, by the label that ends the message about each:
    - (output_c1) there is a source exactly where the kind is not `text`;
    - (output_c2) the source of a `check` is a memref of one `i1`;
    - (output_c3) the source of a `flops` is a memref of one `f64`.
  }];
  let arguments = (ins Mgpu_OutputKindAttr:$kind, StrAttr:$text,
      Arg<Optional<AnyRankedOrUnrankedMemRef>, "", [MemRead]>:$source,
      UnitAttr:$isUnsigned);
  let assemblyFormat =
      "$kind $text ($source^ `:` type($source))? attr-dict";
  let hasVerifier = 1;
}
