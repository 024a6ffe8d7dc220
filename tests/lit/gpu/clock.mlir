// RUN: mgpu-tune run %s > %t.out 2> %t.err && FileCheck %s < %t.out && FileCheck %s --check-prefix=ERR < %t.err
// RUN: mgpu-tune run %s --json 2> %t.err | FileCheck %s --check-prefix=JSON
// RUN: FileCheck %s --check-prefix=ERR < %t.err

// What the runner prints about time goes where it prints it; times themselves
// are not known before the program has run.
// CHECK: Unranked Memref base@ = 0x{{[0-9a-f]+}} rank = 2 offset = 4 sizes = [1, 2] strides = [3, 1]
// CHECK-NEXT: nan
// CHECK-NEXT: prepare
// ERR: clock.mlir:[[#@LINE+20]]:12: warning: rtclock gives a NaN here: the program is planned before it runs, so its host code has no time
// ERR-DAG: {{^}}12.345000 GFLOPS
// ERR-DAG: {{^}}0.000002 GFLOPS
// ERR-DAG: {{^}}nan GFLOPS
// JSON: strides = [3, 1]\nnan\n

func.func @main() {
  %c1 = arith.constant 1 : index
  %m = memref.alloc() : memref<2x3xf32>
  %s = memref.subview %m[1, 1] [1, 2] [1, 1] : memref<2x3xf32> to memref<1x2xf32, strided<[3, 1], offset: 4>>
  %us = memref.cast %s : memref<1x2xf32, strided<[3, 1], offset: 4>> to memref<*xf32>
  call @printMemrefShapeF32(%us) : (memref<*xf32>) -> ()
  %flops = arith.constant 1.2345e10 : f64
  call @printFlops(%flops) : (f64) -> ()
  %f = memref.alloc() : memref<1xf64>
  linalg.fill ins(%flops : f64) outs(%f : memref<1xf64>)
  %c0 = arith.constant 0 : index
  %half = memref.load %f[%c0] : memref<1xf64>
  %many = arith.constant 6.1725e6 : f64
  %less = arith.divf %half, %many : f64
  %begin = call @rtclock() : () -> f64
  %end = call @rtclock() : () -> f64
  %time = arith.subf %end, %begin : f64
  call @printFlops(%less) : (f64) -> ()
  %rate = arith.divf %flops, %time : f64
  call @printFlops(%rate) : (f64) -> ()
  call @printF64(%time) : (f64) -> ()
  call @printNewline() : () -> ()
  return
}
func.func private @printMemrefShapeF32(memref<*xf32>)
func.func private @printFlops(f64)
func.func private @rtclock() -> f64
func.func private @printF64(f64)
func.func private @printNewline()
