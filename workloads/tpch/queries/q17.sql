-- TPC-H Q17, small-quantity-order revenue
-- set brand = Brand#23
-- set container = MED BOX
select sum(l_extendedprice) / 7.0 as avg_yearly
from lineitem
join part on p_partkey = l_partkey
where p_brand = '${brand}'
  and p_container = '${container}'
  and l_quantity < (select 0.2 * avg(other.l_quantity) from lineitem other where other.l_partkey = p_partkey)
