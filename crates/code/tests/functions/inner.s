# Loops inside loops. rdi: turns, rsi: data. A test asks for the pace of the inner ones that have no access.
	.intel_syntax noprefix
	.text

	.globl mixed, mixed_load, mixed_store, mixed_end
mixed:
mixed_load:
	mov rax, qword ptr [rsi]
	mov edx, 16
mixed_inner:
	imul rax, rcx
	add rax, r8
	sub edx, 1
	jne mixed_inner
mixed_store:
	mov qword ptr [rsi], rax
	dec rdi
	jne mixed
	ret
mixed_end:

# The inner loop is passed over where its count is zero.
	.globl guarded, guarded_store, guarded_end
guarded:
	mov edx, r9d
	test edx, edx
	je guarded_store
guarded_inner:
	imul rax, rcx
	add rax, r8
	sub edx, 1
	jne guarded_inner
guarded_store:
	mov qword ptr [rsi], rax
	dec rdi
	jne guarded
	ret
guarded_end:

	.globl calling, calling_store, calling_end
calling:
	call mix
calling_store:
	mov qword ptr [rsi], rax
	dec rdi
	jne calling
	ret
calling_end:

	.globl mix, mix_end
mix:
	mov edx, 16
mix_inner:
	imul rax, rcx
	add rax, r8
	sub edx, 1
	jne mix_inner
	ret
mix_end:

	.globl both, both_store, both_end
both:
	mov edx, 16
both_first:
	imul rax, rcx
	add rax, r8
	sub edx, 1
	jne both_first
	mov edx, 16
both_second:
	sub edx, 1
	jne both_second
both_store:
	mov qword ptr [rsi], rax
	dec rdi
	jne both
	ret
both_end:

	.globl counted, counted_store, counted_end
counted:
	mov edx, 16
counted_inner:
	sub edx, 1
	jne counted_inner
counted_store:
	mov qword ptr [rsi], rax
	dec rdi
	jne counted
	ret
counted_end:

# Records show the loop inside.
	.globl summed, summed_load, summed_store, summed_end
summed:
	mov edx, 16
summed_load:
	add rax, qword ptr [rsi + rdx]
	sub edx, 1
	jne summed_load
summed_store:
	mov qword ptr [rsi], rax
	dec rdi
	jne summed
	ret
summed_end:

	.globl plain, plain_store, plain_end
plain:
plain_store:
	mov qword ptr [rsi], rax
	dec rdi
	jne plain
	ret
plain_end:

	.globl straight, straight_store, straight_end
straight:
	mov edx, 16
straight_inner:
	imul rax, rcx
	add rax, r8
	sub edx, 1
	jne straight_inner
straight_store:
	mov qword ptr [rsi], rax
	ret
straight_end:

	.globl early, early_store, early_end
early:
early_store:
	mov qword ptr [rsi], rax
	mov edx, 16
early_inner:
	imul rax, rcx
	add rax, r8
	sub edx, 1
	jne early_inner
	ret
early_end:
