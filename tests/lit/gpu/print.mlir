// RUN: mgpu-tune run %s > %t && FileCheck %s --match-full-lines --strict-whitespace < %t

// As MLIR's runner prints them: each rank has its own distances.
// CHECK:Unranked Memref base@ = 0x{{[0-9a-f]+}} rank = 0 offset = 0 sizes = [] strides = [] data = 
// CHECK-NEXT:[100000]
// CHECK-NEXT:Unranked Memref base@ = 0x{{[0-9a-f]+}} rank = 1 offset = 0 sizes = [3] strides = [1] data = 
// CHECK-NEXT:[-3,  -3,  -3]
// CHECK-NEXT:Unranked Memref base@ = 0x{{[0-9a-f]+}} rank = 4 offset = 0 sizes = [1, 2, 3, 2] strides = [12, 6, 2, 1] data = 
// CHECK-NEXT:{{\[\[\[\[}}3,     3], 
// CHECK-NEXT:   [3,     3], 
// CHECK-NEXT:   [3,     3]], 
// CHECK-NEXT:  {{\[\[}}3,     3], 
// CHECK-NEXT:   [3,     3], 
// CHECK-NEXT:   [3,     3]]]]
// CHECK-NEXT:Unranked Memref base@ = 0x{{[0-9a-f]+}} rank = 2 offset = 8 sizes = [1, 2] strides = [6, 1] data = 
// CHECK-NEXT:{{\[\[}}3,   3]]
// CHECK-NEXT:( ( 0.0999756, 0.0999756 ), ( 0.0999756, 0.0999756 ) )
// CHECK-NEXT:( 1, 0, 1 )
// CHECK-NEXT:-9000000000
// CHECK-NEXT:18446744073709551615
// CHECK-NEXT:nan
// CHECK-NEXT:0.123457
// CHECK-NEXT:( 1.5, 0.25 )
// CHECK-NEXT:hello
// CHECK-NEXT:there
// CHECK-NEXT:prepare {{.*}}

func.func @main() {
  %big = arith.constant 100000.125 : f32
  %three = arith.constant 3 : i32
  %less = arith.constant -3 : i64
  %a = memref.alloc() : memref<f32>
  memref.store %big, %a[] : memref<f32>
  %ua = memref.cast %a : memref<f32> to memref<*xf32>
  call @printMemrefF32(%ua) : (memref<*xf32>) -> ()
  %b = memref.alloc() : memref<3xi64>
  linalg.fill ins(%less : i64) outs(%b : memref<3xi64>)
  %ub = memref.cast %b : memref<3xi64> to memref<*xi64>
  call @printMemrefI64(%ub) : (memref<*xi64>) -> ()
  %c = memref.alloc() : memref<1x2x3x2xi32>
  linalg.fill ins(%three : i32) outs(%c : memref<1x2x3x2xi32>)
  %uc = memref.cast %c : memref<1x2x3x2xi32> to memref<*xi32>
  call @printMemrefI32(%uc) : (memref<*xi32>) -> ()
  %f = memref.collapse_shape %c [[0, 1], [2, 3]] : memref<1x2x3x2xi32> into memref<2x6xi32>
  %s = memref.subview %f[1, 2] [1, 2] [1, 1] : memref<2x6xi32> to memref<1x2xi32, strided<[6, 1], offset: 8>>
  %us = memref.cast %s : memref<1x2xi32, strided<[6, 1], offset: 8>> to memref<*xi32>
  call @printMemrefI32(%us) : (memref<*xi32>) -> ()
  %h = arith.constant dense<0.1> : vector<2x2xf16>
  vector.print %h : vector<2x2xf16>
  %m = arith.constant dense<[true, false, true]> : vector<3xi1>
  vector.print %m : vector<3xi1>
  %n = arith.constant -9000000000 : i64
  vector.print %n : i64
  %all = arith.constant -1 : index
  vector.print %all : index
  %nan = arith.constant 0x7FC00000 : f32
  vector.print %nan : f32
  %d = arith.constant 0.1234567890123 : f64
  vector.print %d : f64
  %x = arith.constant 1.5 : f32
  %y = arith.constant 0.25 : f64
  vector.print punctuation <open>
  call @printF32(%x) : (f32) -> ()
  call @printComma() : () -> ()
  vector.print %y : f64 punctuation <close>
  call @printNewline() : () -> ()
  vector.print str "hello\n"
  %p = llvm.mlir.addressof @there : !llvm.ptr
  call @printString(%p) : (!llvm.ptr) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)
func.func private @printMemrefI64(memref<*xi64>)
func.func private @printMemrefI32(memref<*xi32>)
func.func private @printF32(f32)
func.func private @printComma()
func.func private @printNewline()
func.func private @printString(!llvm.ptr)
llvm.mlir.global internal constant @there("there\0A\00")
