-- TPC-H Q14, promotion effect
-- set date = 1995-09-01
select
  100.00 * sum(case when p_type like 'PROMO%' then l_extendedprice * (1 - l_discount) else 0 end)
    / sum(l_extendedprice * (1 - l_discount)) as promo_revenue
from lineitem
join part on p_partkey = l_partkey
where l_shipdate >= date '${date}'
  and l_shipdate < date '${date}' + interval '1' month
