// RUN: mgpu-tune run %s | FileCheck %s

// Two of each four values of a matrix become zero, those of the smaller sizes; what is left
// is multiplied, in f16 with sums in f32.
// CHECK: ( 0, 0, 2, 3, 0, 0, 6, 7 )
// CHECK-NEXT: ( 0, 0, 3, 4, 0, 0, 7, 8 )
// CHECK-NEXT: ( 0, 0, 4, 5, 0, 0, 8, 9 )
// CHECK-NEXT: ( 0, 0, 5, 6, 0, 0, 9, 10 )
// CHECK-NEXT: ( 98, 116, 134, 152 )
// CHECK-NEXT: ( 116, 138, 160, 182 )
// CHECK-NEXT: ( 134, 160, 186, 212 )
// CHECK-NEXT: ( 152, 182, 212, 242 )

llvm.func @mgpuCreateSparseLtEnv()
llvm.func @mgpuDestroySparseLtEnv()
func.func @product(%a: memref<4x8xf16>, %b: memref<8x4xf16>, %c: memref<4x4xf16>) {
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %t0 = gpu.wait async
  %da, %t1 = gpu.alloc async [%t0] () : memref<4x8xf16>
  %db, %t2 = gpu.alloc async [%t1] () : memref<8x4xf16>
  %dc, %t3 = gpu.alloc async [%t2] () : memref<4x4xf16>
  %t4 = gpu.memcpy async [%t3] %da, %a : memref<4x8xf16>, memref<4x8xf16>
  %t5 = gpu.memcpy async [%t4] %db, %b : memref<8x4xf16>, memref<8x4xf16>
  %t6 = gpu.memcpy async [%t5] %dc, %c : memref<4x4xf16>, memref<4x4xf16>
  %s, %t7 = gpu.create_2to4_spmat async [%t6] {PRUNE_AND_CHECK} %c4, %c8, %da : memref<4x8xf16>
  %x, %t8 = gpu.create_dn_tensor async [%t7] %db, %c8, %c4 : index, index into memref<8x4xf16>
  %y, %t9 = gpu.create_dn_tensor async [%t8] %dc, %c4, %c4 : index, index into memref<4x4xf16>
  %z0, %z1, %z2, %t10 = gpu.spmm_buffer_size async [%t9] %s{NON_TRANSPOSE}, %x{NON_TRANSPOSE}, %y : index, index, index into f16
  %m0, %t11 = gpu.alloc async [%t10] (%z0) : memref<?xi8>
  %m1, %t12 = gpu.alloc async [%t11] (%z1) : memref<?xi8>
  %m2, %t13 = gpu.alloc async [%t12] (%z2) : memref<?xi8>
  %t14 = gpu.spmm async [%t13] %s{NON_TRANSPOSE}, %x{NON_TRANSPOSE}, %y, %m0, %m1, %m2 : memref<?xi8>, memref<?xi8>, memref<?xi8> into f16
  %t15 = gpu.destroy_sp_mat async [%t14] %s
  %t16 = gpu.destroy_dn_tensor async [%t15] %x
  %t17 = gpu.destroy_dn_tensor async [%t16] %y
  %t18 = gpu.memcpy async [%t17] %c, %dc : memref<4x4xf16>, memref<4x4xf16>
  %t19 = gpu.memcpy async [%t18] %a, %da : memref<4x8xf16>, memref<4x8xf16>
  %t20 = gpu.dealloc async [%t19] %m0 : memref<?xi8>
  gpu.wait [%t20]
  return
}
func.func @main() {
  llvm.call @mgpuCreateSparseLtEnv() : () -> ()
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %f0 = arith.constant 0.0 : f16
  %a = memref.alloc() : memref<4x8xf16>
  %b = memref.alloc() : memref<8x4xf16>
  %c = memref.alloc() : memref<4x4xf16>
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %j = %c0 to %c8 step %c1 {
      %n = arith.addi %i, %j : index
      %k = arith.index_cast %n : index to i32
      %f = arith.sitofp %k : i32 to f16
      memref.store %f, %a[%i, %j] : memref<4x8xf16>
      memref.store %f, %b[%j, %i] : memref<8x4xf16>
    }
    scf.for %j = %c0 to %c4 step %c1 {
      memref.store %f0, %c[%i, %j] : memref<4x4xf16>
    }
  }
  call @product(%a, %b, %c) : (memref<4x8xf16>, memref<8x4xf16>, memref<4x4xf16>) -> ()
  scf.for %i = %c0 to %c4 step %c1 {
    %v = vector.transfer_read %a[%i, %c0], %f0 : memref<4x8xf16>, vector<8xf16>
    vector.print %v : vector<8xf16>
  }
  scf.for %i = %c0 to %c4 step %c1 {
    %v = vector.transfer_read %c[%i, %c0], %f0 : memref<4x4xf16>, vector<4xf16>
    vector.print %v : vector<4xf16>
  }
  llvm.call @mgpuDestroySparseLtEnv() : () -> ()
  return
}
