# What gcc 12 makes at -O2 of functions on struct node { struct node *next; long value; struct node *child[2]; long key; }.
# Labels name the loads that the test asks about.
	.intel_syntax noprefix
	.text
	.globl _start
_start:

# while (p) { s += p->value; p = p->next; }
list:
	xor	eax, eax
	test	rdi, rdi
	je	2f
1:
list_value:
	add	rax, QWORD PTR 8[rdi]
list_next:
	mov	rdi, QWORD PTR [rdi]
	test	rdi, rdi
	jne	1b
	ret
2:
	ret

# for (i = 0; i < n; i++) s += a[i] * 31;
array:
	test	rsi, rsi
	je	2f
	lea	rsi, [rdi+rsi*8]
	xor	ecx, ecx
1:
array_element:
	mov	rdx, QWORD PTR [rdi]
	add	rdi, 8
	mov	rax, rdx
	sal	rax, 5
	sub	rax, rdx
	add	rcx, rax
	cmp	rdi, rsi
	jne	1b
	mov	rax, rcx
	ret
2:
	xor	ecx, ecx
	mov	rax, rcx
	ret

# for (i = 0; i < n; i++) s ^= a[index[i]];
indirect:
	test	rdx, rdx
	je	2f
	lea	rcx, [rsi+rdx*4]
	xor	eax, eax
1:
indirect_index:
	mov	edx, DWORD PTR [rsi]
	add	rsi, 4
indirect_element:
	xor	rax, QWORD PTR [rdi+rdx*8]
	cmp	rcx, rsi
	jne	1b
	ret
2:
	xor	eax, eax
	ret

# for (i = 0; i < n; i++) { p = buckets[hash(keys[i])]; while (p && p->key != keys[i]) p = p->next; if (p) s += p->value; }
bucket:
	test	rsi, rsi
	je	5f
	lea	r9, [rdi+rsi*8]
	xor	ecx, ecx
	lea	r8, buckets[rip]
	mov	esi, 2654435761
1:
bucket_keys:
	mov	rdx, QWORD PTR [rdi]
	mov	rax, rdx
	imul	rax, rsi
	shr	rax, 7
	and	eax, 1023
bucket_head:
	mov	rax, QWORD PTR [r8+rax*8]
	test	rax, rax
	jne	3f
	jmp	4f
2:
bucket_next:
	mov	rax, QWORD PTR [rax]
	test	rax, rax
	je	4f
3:
bucket_key:
	cmp	rdx, QWORD PTR 32[rax]
	jne	2b
bucket_value:
	add	rcx, QWORD PTR 8[rax]
4:
	add	rdi, 8
	cmp	r9, rdi
	jne	1b
	mov	rax, rcx
	ret
5:
	xor	ecx, ecx
	mov	rax, rcx
	ret

# while (p && p->key != key) p = p->child[key > p->key];
tree:
	jmp	2f
1:
tree_key:
	cmp	QWORD PTR 32[rdi], rsi
	je	3f
	setb	al
	movzx	eax, al
tree_child:
	mov	rdi, QWORD PTR 16[rdi+rax*8]
2:
	test	rdi, rdi
	jne	1b
	xor	eax, eax
	ret
3:
	mov	rax, rdi
	ret

# while (p) { s += p->value; s += q->value; p = p->next; q = q->next; }
chains:
	xor	edx, edx
	test	rdi, rdi
	je	2f
1:
chains_other_value:
	mov	rax, QWORD PTR 8[rsi]
chains_value:
	add	rax, QWORD PTR 8[rdi]
chains_next:
	mov	rdi, QWORD PTR [rdi]
chains_other_next:
	mov	rsi, QWORD PTR [rsi]
	add	rdx, rax
	test	rdi, rdi
	jne	1b
2:
	mov	rax, rdx
	ret

# while (n--) global = global->next;
through_global:
	lea	rax, -1[rdi]
	test	rdi, rdi
	je	2f
global_first:
	mov	rdx, QWORD PTR global[rip]
1:
global_next:
	mov	rdx, QWORD PTR [rdx]
	sub	rax, 1
	jnb	1b
	mov	QWORD PTR global[rip], rdx
2:
	ret

# A function that is called: return p->next;
next_of:
called_next:
	mov	rax, QWORD PTR [rdi]
	ret

# while (p) { s += p->value; p = next_of(p); }, gcc knowing that next_of() leaves rdi alone
called:
	xor	edx, edx
	test	rdi, rdi
	je	2f
1:
	call	next_of
called_value:
	add	rdx, QWORD PTR 8[rdi]
	mov	rdi, rax
	test	rax, rax
	jne	1b
2:
	mov	rax, rdx
	ret

# for (i = 0; i < n; i += by) s += a[i];
strided:
	test	rsi, rsi
	je	2f
	xor	eax, eax
	xor	ecx, ecx
1:
strided_element:
	add	rcx, QWORD PTR [rdi+rax*8]
	add	rax, rdx
	cmp	rax, rsi
	jb	1b
	mov	rax, rcx
	ret
2:
	xor	ecx, ecx
	mov	rax, rcx
	ret

# memcpy(to, from, n), in a loop
copied:
1:
	mov	rdi, rbx
	mov	rsi, r12
	mov	rcx, r13
copied_bytes:
	rep movsb
	add	rbx, r13
	dec	r14
	jne	1b
	ret

# s += a[index[i] .. index[i + 3]], gathered
gathered:
1:
gathered_index:
	vmovdqu	ymm1, YMMWORD PTR [rsi]
	vpcmpeqd	ymm2, ymm2, ymm2
gathered_elements:
	vpgatherqq	ymm0, QWORD PTR [rdi+ymm1*8], ymm2
	vpaddq	ymm3, ymm3, ymm0
	add	rsi, 32
	cmp	rsi, rdx
	jne	1b
	ret

# p = malloc_of_unknown(); return p->next->next, with nothing around it
fetched:
	call	QWORD PTR global[rip]
fetched_next:
	mov	rax, QWORD PTR [rax]
fetched_second:
	mov	rax, QWORD PTR [rax]
	ret

# Callee-saved registers come through a call of unknown code; the argument of a function of known callers from there.
visits:
	push	rbx
	mov	rbx, rdi
1:
	call	QWORD PTR global[rip]
visits_element:
	mov	rdi, QWORD PTR [rbx]
	add	rbx, 8
	call	visited
	test	rbx, rbx
	jne	1b
	pop	rbx
	ret
visited:
visited_field:
	mov	rax, QWORD PTR 8[rdi]
	ret

# A pointer in rbp that is no frame: p = p->next at displacement 8
frameless:
1:
frameless_next:
	mov	rbp, QWORD PTR 8[rbp]
	test	rbp, rbp
	jne	1b
	ret

# A pointer spilled with push and pop
pushed:
1:
pushed_load:
	mov	rax, QWORD PTR [rdi]
	push	rax
	push	rdi
	sub	rsp, 16
	add	rsp, 16
	pop	rdi
	pop	rcx
pushed_use:
	mov	rax, QWORD PTR [rcx]
	add	rdi, 8
	jne	1b
	ret

# p = q ? q : p->next, by cmov: the address comes from both
conditional:
1:
conditional_next:
	mov	rax, QWORD PTR [rdi]
conditional_other:
	mov	rcx, QWORD PTR [rsi]
	test	rdx, 1
	cmovne	rdi, rax
	add	rsi, 8
	dec	rdx
	jne	1b
	ret

	.bss
	.align 32
buckets:
	.zero	8192
global:
	.zero	8
