-- TPC-H Q16, parts/supplier relationship
-- set brand = Brand#45
-- set type = MEDIUM POLISHED
-- set sizes = 49, 14, 23, 45, 19, 3, 36, 9
select p_brand, p_type, p_size, count(distinct ps_suppkey) as supplier_cnt
from partsupp
join part on p_partkey = ps_partkey
where p_brand <> '${brand}'
  and p_type not like '${type}%'
  and p_size in (${sizes})
  and ps_suppkey not in (select s_suppkey from supplier where s_comment like '%Customer%Complaints%')
group by p_brand, p_type, p_size
order by supplier_cnt desc, p_brand, p_type, p_size
