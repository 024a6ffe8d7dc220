// RUN: mgpu-tune run %s > %t.out 2> %t.err
// RUN: FileCheck %s < %t.out
// RUN: FileCheck %s --check-prefix=REMARK < %t.err

// The generic forms of the gpu dialect's first document.
// CHECK: {{\[}}6,  7,  8,  9]
// REMARK: spellings-2019.mlir:[[# @LINE + 8]]:1: remark: this spelling of 2019 is read as the one shown
// REMARK-NEXT: %t = "gpu.thread_id"() {dimension = #gpu<dim x>} : () -> (index)

func.func @main() {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %m = memref.alloc() : memref<4xi32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1) threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
    %t = "gpu.thread_id"() {dimension = "x"} : () -> (index)
    %n = arith.index_cast %t : index to i32
    %s = "gpu.all_reduce"(%n) ({}) { op = "add" } : (i32) -> (i32)
    "gpu.barrier"() : () -> ()
    %v = arith.addi %n, %s : i32
    memref.store %v, %m[%t] : memref<4xi32>
    gpu.terminator
  }
  %u = memref.cast %m : memref<4xi32> to memref<*xi32>
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
