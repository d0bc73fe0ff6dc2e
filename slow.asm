	.text
	.file	"tilewright"
	.p2align	4, 0x90
	.type	qbag.body,@function
qbag.body:
	pushq	%rbp
	pushq	%r15
	pushq	%r14
	pushq	%r13
	pushq	%r12
	pushq	%rbx
	movq	%r9, -8(%rsp)
	leaq	80(%r8), %r9
	leaq	80(%rcx), %rdi
	xorl	%r11d, %r11d
	movq	%rsi, %r10
	.p2align	6, 0x90
.LBB0_1:
	movq	%r11, %rbx
	shlq	$9, %rbx
	addq	-8(%rsp), %rbx
	movq	%r11, %r14
	shlq	$8, %r14
	addq	%rsi, %r14
	movq	%rdi, %r15
	movq	%r9, %r12
	xorl	%r13d, %r13d
	.p2align	6, 0x90
.LBB0_2:
	vxorps	%xmm0, %xmm0, %xmm0
	movq	$-20, %rbp
	vxorps	%xmm7, %xmm7, %xmm7
	vxorps	%xmm1, %xmm1, %xmm1
	vxorps	%xmm2, %xmm2, %xmm2
	vxorps	%xmm3, %xmm3, %xmm3
	vxorps	%xmm4, %xmm4, %xmm4
	vxorps	%xmm5, %xmm5, %xmm5
	vxorps	%xmm6, %xmm6, %xmm6
	vxorps	%xmm8, %xmm8, %xmm8
	vxorps	%xmm15, %xmm15, %xmm15
	vxorps	%xmm9, %xmm9, %xmm9
	vxorps	%xmm10, %xmm10, %xmm10
	vxorps	%xmm11, %xmm11, %xmm11
	vxorps	%xmm12, %xmm12, %xmm12
	vxorps	%xmm13, %xmm13, %xmm13
	vxorps	%xmm14, %xmm14, %xmm14
	.p2align	6, 0x90
.LBB0_3:
	movslq	(%r15,%rbp,4), %rax
	vbroadcastss	(%rdx,%rax,4), %zmm16
	shlq	$9, %rax
	vpmovzxwd	224(%r14,%rax), %zmm17
	vpmovzxwd	192(%r14,%rax), %zmm18
	vpmovzxwd	(%r14,%rax), %zmm19
	vpmovzxwd	32(%r14,%rax), %zmm20
	vpmovzxwd	64(%r14,%rax), %zmm21
	vpmovzxwd	96(%r14,%rax), %zmm22
	vpmovzxwd	128(%r14,%rax), %zmm23
	vpmovzxwd	160(%r14,%rax), %zmm24
	vpslld	$16, %zmm24, %zmm24
	vpslld	$16, %zmm23, %zmm23
	vpslld	$16, %zmm22, %zmm22
	vpslld	$16, %zmm21, %zmm21
	vpslld	$16, %zmm20, %zmm20
	vpslld	$16, %zmm19, %zmm19
	vpslld	$16, %zmm18, %zmm18
	vpslld	$16, %zmm17, %zmm17
	vmulps	%zmm17, %zmm16, %zmm17
	vmulps	%zmm18, %zmm16, %zmm18
	vmulps	%zmm19, %zmm16, %zmm19
	vmulps	%zmm20, %zmm16, %zmm20
	vmulps	%zmm21, %zmm16, %zmm21
	vmulps	%zmm22, %zmm16, %zmm22
	vmulps	%zmm23, %zmm16, %zmm23
	vmulps	%zmm24, %zmm16, %zmm16
	vbroadcastss	(%r12,%rbp,4), %zmm24
	vfmadd231ps	%zmm16, %zmm24, %zmm12
	vfmadd231ps	%zmm23, %zmm24, %zmm11
	vfmadd231ps	%zmm22, %zmm24, %zmm10
	vfmadd231ps	%zmm21, %zmm24, %zmm9
	vfmadd231ps	%zmm20, %zmm24, %zmm15
	vfmadd231ps	%zmm19, %zmm24, %zmm8
	vfmadd231ps	%zmm18, %zmm24, %zmm13
	movslq	80(%r15,%rbp,4), %rax
	vbroadcastss	(%rdx,%rax,4), %zmm16
	shlq	$9, %rax
	vpmovzxwd	224(%r14,%rax), %zmm18
	vpmovzxwd	192(%r14,%rax), %zmm19
	vpmovzxwd	(%r14,%rax), %zmm20
	vpmovzxwd	32(%r14,%rax), %zmm21
	vpmovzxwd	64(%r14,%rax), %zmm22
	vpmovzxwd	96(%r14,%rax), %zmm23
	vpmovzxwd	128(%r14,%rax), %zmm25
	vfmadd231ps	%zmm17, %zmm24, %zmm14
	vpmovzxwd	160(%r14,%rax), %zmm17
	vpslld	$16, %zmm17, %zmm17
	vpslld	$16, %zmm25, %zmm24
	vpslld	$16, %zmm23, %zmm23
	vpslld	$16, %zmm22, %zmm22
	vpslld	$16, %zmm21, %zmm21
	vpslld	$16, %zmm20, %zmm20
	vpslld	$16, %zmm19, %zmm19
	vpslld	$16, %zmm18, %zmm18
	vmulps	%zmm18, %zmm16, %zmm18
	vmulps	%zmm19, %zmm16, %zmm19
	vmulps	%zmm20, %zmm16, %zmm20
	vmulps	%zmm21, %zmm16, %zmm21
	vmulps	%zmm22, %zmm16, %zmm22
	vmulps	%zmm23, %zmm16, %zmm23
	vmulps	%zmm24, %zmm16, %zmm24
	vmulps	%zmm17, %zmm16, %zmm16
	vbroadcastss	80(%r12,%rbp,4), %zmm17
	vfmadd231ps	%zmm16, %zmm17, %zmm4
	vfmadd231ps	%zmm24, %zmm17, %zmm3
	vfmadd231ps	%zmm23, %zmm17, %zmm2
	vfmadd231ps	%zmm22, %zmm17, %zmm1
	vfmadd231ps	%zmm21, %zmm17, %zmm7
	vfmadd231ps	%zmm20, %zmm17, %zmm0
	vfmadd231ps	%zmm19, %zmm17, %zmm5
	vfmadd231ps	%zmm18, %zmm17, %zmm6
	incq	%rbp
	jne	.LBB0_3
	movq	%r13, %rax
	shlq	$11, %rax
	vmovups	%zmm15, 64(%rbx,%rax)
	vmovups	%zmm8, (%rbx,%rax)
	vmovups	%zmm9, 128(%rbx,%rax)
	vmovups	%zmm10, 192(%rbx,%rax)
	vmovups	%zmm11, 256(%rbx,%rax)
	vmovups	%zmm12, 320(%rbx,%rax)
	vmovups	%zmm13, 384(%rbx,%rax)
	vmovups	%zmm14, 448(%rbx,%rax)
	vmovups	%zmm7, 1088(%rbx,%rax)
	vmovups	%zmm0, 1024(%rbx,%rax)
	vmovups	%zmm1, 1152(%rbx,%rax)
	vmovups	%zmm2, 1216(%rbx,%rax)
	vmovups	%zmm3, 1280(%rbx,%rax)
	vmovups	%zmm4, 1344(%rbx,%rax)
	vmovups	%zmm5, 1408(%rbx,%rax)
	vmovups	%zmm6, 1472(%rbx,%rax)
	incq	%r13
	addq	$160, %r12
	addq	$160, %r15
	cmpq	$16, %r13
	jne	.LBB0_2
	vxorps	%xmm0, %xmm0, %xmm0
	vxorps	%xmm1, %xmm1, %xmm1
	vxorps	%xmm2, %xmm2, %xmm2
	vxorps	%xmm3, %xmm3, %xmm3
	vxorps	%xmm4, %xmm4, %xmm4
	vxorps	%xmm5, %xmm5, %xmm5
	vxorps	%xmm6, %xmm6, %xmm6
	vxorps	%xmm7, %xmm7, %xmm7
	xorl	%r14d, %r14d
	.p2align	6, 0x90
.LBB0_6:
	movslq	2560(%rcx,%r14,4), %rax
	vbroadcastss	(%rdx,%rax,4), %zmm8
	shlq	$9, %rax
	vpmovzxwd	224(%r10,%rax), %zmm9
	vpmovzxwd	192(%r10,%rax), %zmm10
	vpmovzxwd	(%r10,%rax), %zmm11
	vpmovzxwd	32(%r10,%rax), %zmm12
	vpmovzxwd	64(%r10,%rax), %zmm13
	vpmovzxwd	96(%r10,%rax), %zmm14
	vpmovzxwd	128(%r10,%rax), %zmm15
	vpmovzxwd	160(%r10,%rax), %zmm16
	vpslld	$16, %zmm16, %zmm16
	vpslld	$16, %zmm15, %zmm15
	vpslld	$16, %zmm14, %zmm14
	vpslld	$16, %zmm13, %zmm13
	vpslld	$16, %zmm12, %zmm12
	vpslld	$16, %zmm11, %zmm11
	vpslld	$16, %zmm10, %zmm10
	vpslld	$16, %zmm9, %zmm9
	vmulps	%zmm9, %zmm8, %zmm9
	vmulps	%zmm10, %zmm8, %zmm10
	vmulps	%zmm11, %zmm8, %zmm11
	vmulps	%zmm12, %zmm8, %zmm12
	vmulps	%zmm13, %zmm8, %zmm13
	vmulps	%zmm14, %zmm8, %zmm14
	vmulps	%zmm15, %zmm8, %zmm15
	vmulps	%zmm16, %zmm8, %zmm8
	vbroadcastss	2560(%r8,%r14,4), %zmm16
	vfmadd231ps	%zmm8, %zmm16, %zmm5
	vfmadd231ps	%zmm15, %zmm16, %zmm4
	vfmadd231ps	%zmm14, %zmm16, %zmm3
	vfmadd231ps	%zmm13, %zmm16, %zmm2
	vfmadd231ps	%zmm12, %zmm16, %zmm1
	vfmadd231ps	%zmm11, %zmm16, %zmm0
	vfmadd231ps	%zmm10, %zmm16, %zmm6
	vfmadd231ps	%zmm9, %zmm16, %zmm7
	incq	%r14
	cmpq	$20, %r14
	jne	.LBB0_6
	vmovups	%zmm0, 32768(%rbx)
	vmovups	%zmm1, 32832(%rbx)
	vmovups	%zmm2, 32896(%rbx)
	vmovups	%zmm3, 32960(%rbx)
	vmovups	%zmm4, 33024(%rbx)
	vmovups	%zmm5, 33088(%rbx)
	vmovups	%zmm6, 33152(%rbx)
	vmovups	%zmm7, 33216(%rbx)
	leaq	1(%r11), %rax
	addq	$256, %r10
	testq	%r11, %r11
	movq	%rax, %r11
	je	.LBB0_1
	xorl	%eax, %eax
	popq	%rbx
	popq	%r12
	popq	%r13
	popq	%r14
	popq	%r15
	popq	%rbp
	vzeroupper
	retq
.Lfunc_end0:
	.size	qbag.body, .Lfunc_end0-qbag.body

	.globl	qbag
	.p2align	4, 0x90
	.type	qbag,@function
qbag:
	pushq	%r15
	pushq	%r14
	pushq	%rbx
	subq	$48, %rsp
	movq	%rdx, %r14
	movq	%rsi, %r15
	movq	%rdi, %rbx
	testq	%rdi, %rdi
	jne	.LBB1_2
	callq	tw_default_ctx@PLT
	movq	%rax, %rbx
.LBB1_2:
	leaq	.Lqbag.signature(%rip), %rsi
	leaq	40(%rsp), %r8
	movq	%rsp, %r9
	movq	%rbx, %rdi
	movq	%r15, %rdx
	movq	%r14, %rcx
	callq	tw_check_args@PLT
	testl	%eax, %eax
	jne	.LBB1_4
	movq	(%rsp), %rsi
	movq	8(%rsp), %rdx
	movq	16(%rsp), %rcx
	movq	24(%rsp), %r8
	movq	32(%rsp), %r9
	movq	%rbx, %rdi
	callq	qbag.body
.LBB1_4:
	addq	$48, %rsp
	popq	%rbx
	popq	%r14
	popq	%r15
	retq
.Lfunc_end1:
	.size	qbag, .Lfunc_end1-qbag

	.globl	qbag_last_error
	.p2align	4, 0x90
	.type	qbag_last_error,@function
qbag_last_error:
	pushq	%rax
	callq	tw_last_error@PLT
	popq	%rcx
	retq
.Lfunc_end2:
	.size	qbag_last_error, .Lfunc_end2-qbag_last_error

	.type	.Ltext,@object
	.section	.rodata.str1.1,"aMS",@progbits,1
.Ltext:
	.asciz	"t"
	.size	.Ltext, 2

	.type	.Ltable,@object
	.section	.rodata,"a",@progbits
	.p2align	3, 0x0
.Ltable:
	.quad	300
	.long	0
	.long	0
	.quad	256
	.long	0
	.long	0
	.size	.Ltable, 32

	.type	.Ltext.1,@object
	.section	.rodata.str1.1,"aMS",@progbits,1
.Ltext.1:
	.asciz	"sc"
	.size	.Ltext.1, 3

	.type	.Ltable.2,@object
	.section	.rodata,"a",@progbits
	.p2align	3, 0x0
.Ltable.2:
	.quad	300
	.long	0
	.long	0
	.size	.Ltable.2, 16

	.type	.Ltext.3,@object
	.section	.rodata.str1.1,"aMS",@progbits,1
.Ltext.3:
	.asciz	"ix"
	.size	.Ltext.3, 3

	.type	.Ltable.4,@object
	.section	.rodata,"a",@progbits
	.p2align	3, 0x0
.Ltable.4:
	.quad	33
	.long	0
	.long	0
	.quad	20
	.long	0
	.long	0
	.size	.Ltable.4, 32

	.type	.Ltext.5,@object
	.section	.rodata.str1.1,"aMS",@progbits,1
.Ltext.5:
	.asciz	"wgt"
	.size	.Ltext.5, 4

	.type	.Ltable.6,@object
	.section	.rodata,"a",@progbits
	.p2align	3, 0x0
.Ltable.6:
	.quad	33
	.long	0
	.long	0
	.quad	20
	.long	0
	.long	0
	.size	.Ltable.6, 32

	.type	.Ltext.7,@object
	.section	.rodata.str1.1,"aMS",@progbits,1
.Ltext.7:
	.asciz	"o"
	.size	.Ltext.7, 2

	.type	.Ltable.8,@object
	.section	.rodata,"a",@progbits
	.p2align	3, 0x0
.Ltable.8:
	.quad	33
	.long	0
	.long	0
	.quad	256
	.long	0
	.long	0
	.size	.Ltable.8, 32

	.type	.Ltext.9,@object
	.section	.rodata.str1.1,"aMS",@progbits,1
.Ltext.9:
	.asciz	"qbag"
	.size	.Ltext.9, 5

	.type	.Ltable.10,@object
	.section	.data.rel.ro,"aw",@progbits
	.p2align	3, 0x0
.Ltable.10:
	.quad	.Ltext
	.quad	.Ltable
	.quad	0
	.zero	16
	.quad	0
	.long	0
	.byte	4
	.byte	16
	.short	1
	.long	2
	.long	0
	.long	0
	.long	4294967295
	.quad	.Ltext.1
	.quad	.Ltable.2
	.quad	0
	.zero	16
	.quad	0
	.long	0
	.byte	2
	.byte	32
	.short	1
	.long	1
	.long	0
	.long	0
	.long	4294967295
	.quad	.Ltext.3
	.quad	.Ltable.4
	.quad	0
	.zero	16
	.quad	0
	.long	0
	.byte	1
	.byte	32
	.short	1
	.long	2
	.long	0
	.long	0
	.long	4294967295
	.quad	.Ltext.5
	.quad	.Ltable.6
	.quad	0
	.zero	16
	.quad	0
	.long	0
	.byte	2
	.byte	32
	.short	1
	.long	2
	.long	0
	.long	0
	.long	4294967295
	.quad	.Ltext.7
	.quad	.Ltable.8
	.quad	0
	.zero	16
	.quad	0
	.long	0
	.byte	2
	.byte	32
	.short	1
	.long	2
	.long	1
	.long	0
	.long	4294967295
	.size	.Ltable.10, 360

	.type	.Ltext.11,@object
	.section	.rodata.str1.16,"aMS",@progbits,1
	.p2align	4, 0x0
.Ltext.11:
	.asciz	"sse3,pclmul,ssse3,fma,cx16,sse4.1,sse4.2,crc32,movbe,popcnt,aes,xsave,avx,f16c,rdrnd,sahf,lzcnt,prfchw,fsgsbase,bmi,avx2,bmi2,avx512f,avx512dq,rdseed,adx,avx512ifma,clflushopt,clwb,avx512cd,sha,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,gfni,vaes,vpclmulqdq,avx512vnni,avx512bitalg,avx512vpopcntdq,rdpid,cldemote,movdiri,movdir64b,serialize,amx-bf16,avx512fp16,amx-tile,amx-int8,avxvnni,avx512bf16,evex512"
	.size	.Ltext.11, 404

	.type	.Lqbag.signature,@object
	.section	.data.rel.ro,"aw",@progbits
	.p2align	3, 0x0
.Lqbag.signature:
	.long	1
	.long	1
	.quad	.Ltext.9
	.quad	.Ltable.10
	.quad	0
	.quad	.Ltext.11
	.quad	-9079819798736142337
	.quad	0
	.long	5
	.long	5
	.long	0
	.long	0
	.size	.Lqbag.signature, 72

	.type	.Ltable.12,@object
	.p2align	3, 0x0
.Ltable.12:
	.quad	.Ltext.9
	.quad	qbag
	.quad	.Lqbag.signature
	.size	.Ltable.12, 24

	.type	.Ltext.13,@object
	.section	.rodata.str1.16,"aMS",@progbits,1
	.p2align	4, 0x0
.Ltext.13:
	.asciz	"tilewright 0.1.0"
	.size	.Ltext.13, 17

	.type	tilewright_module,@object
	.section	.data.rel.ro,"aw",@progbits
	.weak	tilewright_module
	.p2align	3, 0x0
tilewright_module:
	.long	1
	.long	1
	.quad	.Ltable.12
	.quad	.Ltext.13
	.size	tilewright_module, 24

	.section	".note.GNU-stack","",@progbits
